import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../src/config/config.ts';
import { policies } from '../src/variant.ts';
import { skillDocument } from '../src/web/documents/skill.ts';

// Within the size, addresses of services may have this many characters, and be named wherever a call needs them.
const BASE_URL = 'https://blogs.agents.example.org';
const common = { BASE_URL, SECRET: 's'.repeat(43), MAIL_FROM: 'Blogs <blogs@example.org>' };
const smtp = { SMTP_URL: 'smtp://mail.example.org:587' };
const unlimited = Object.fromEntries(policies.map((name) => [`LIMIT_${name.toUpperCase()}`, '0']));
const longNumbers = Object.fromEntries(Object.keys(unlimited).map((name) => [name, '100000']));

test('skill.md takes at most 6,000 bytes, however the service is configured', () => {
  for (const VARIANT of ['subdomain', 'path']) {
    for (const mail of [{}, smtp]) {
      for (const limits of [{}, unlimited, longNumbers]) {
        const text = skillDocument(loadConfig({ ...common, VARIANT, ...mail, ...limits }));
        const size = Buffer.byteLength(text);
        assert.ok(size <= 6_000, `${size} bytes: ${JSON.stringify({ VARIANT, ...mail, ...limits })}`);
        // Nothing of the template is left, and no condition left a gap.
        assert.doesNotMatch(text, /\{\{|\}\}|\n\n\n/);
        assert.equal(text.includes('writes its mail to a folder'), !('SMTP_URL' in mail));
      }
    }
  }
});
