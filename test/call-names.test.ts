import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsAsCommands, callsAsTools } from '../src/rules/call-names.ts';
import { runCommandLine } from '../src/cli/main.ts';
import { catalogue, errorCodes } from '../src/errors.ts';
import type { OpenApiDocument } from '../src/schemas/openapi.ts';
import { operationsOf } from './support/api-document.ts';
import { startInstance } from './support/instance.ts';

test('a call in a hint becomes a tool and a command that there are, and says what it said', async () => {
  const at = await startInstance();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const listed: { result: { tools: { name: string }[] } } = JSON.parse(
    (await at.call('POST', '/mcp', { body })).text,
  );
  const document: OpenApiDocument = JSON.parse((await at.call('GET', '/api/openapi.json')).text);
  await at.close();
  const tools = new Set(listed.result.tools.map(({ name }) => name));
  let help = '';
  await runCommandLine(['--help'], { out: (text) => (help += text), err: assert.fail });

  const commands = new Set<string>();
  for (const placed of operationsOf(document)) {
    const call = `${placed.method.toUpperCase()} ${placed.path}`;
    const tool = placed.operation.operationId.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const asTool = callsAsTools(`Now: ${call} lists.`);
    if (asTool !== `Now: ${call} lists.`) assert.equal(asTool, `Now: '${tool}' lists.`);
    if (asTool !== `Now: ${call} lists.`) assert.ok(tools.has(tool), tool);
    const [, command] = /'masthead (\w+(?:[ -]\w+)*)/.exec(callsAsCommands('masthead', call)) ?? [];
    if (command !== undefined) commands.add(command);
  }
  assert.ok(commands.size > 5);
  for (const command of commands) assert.ok(help.includes(`  ${command}`), command);
});

test('a call is known with an address, an id, a query and a body', () => {
  const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';
  for (const [text, asTool, asCommand] of [
    [
      'POST https://a.example:8443/api/recover with {"email": "…"}.',
      'POST https://a.example:8443/api/recover with {"email": "…"}.',
      "'masthead recover --email <address>'.",
    ],
    ['GET /api/verify?token=… with it', "'verify' with it", "'masthead verify <token>' with it"],
    [`GET /api/posts/${id}/comments lists`, "'list_comments' lists", "'masthead comments' lists"],
    ['GET /api/openapi.json', 'GET /api/openapi.json', 'GET /api/openapi.json'],
  ] as const)
    assert.deepEqual([callsAsTools(text), callsAsCommands('masthead', text)], [asTool, asCommand]);
});

test('no hint of the catalogue names a call to one who cannot make it', () => {
  for (const code of errorCodes) {
    const { hint } = catalogue[code];
    assert.doesNotMatch(
      callsAsCommands('masthead', hint),
      /\b(?:POST|DELETE|PATCH) \/api|GET \/api\/(?!openapi)/,
      code,
    );
    assert.doesNotMatch(callsAsTools(hint), /\b(?:GET|POST|DELETE|PATCH) \/api\/(?!openapi|re)/, code);
  }
});
