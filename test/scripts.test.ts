import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scriptOf } from '../src/rules/text/scripts.ts';
import { assertOk, describeInstances } from './support/instance.ts';
import { open } from './support/pages.ts';

const texts: readonly (readonly [text: string, script: string | null])[] = [
  ['A harbor in spring', null],
  ['Café, naïve, Übermut, tiếng Việt, 2026 🎉 → ✓ …', null],
  ['', null],
  ['12 345', null],
  ['The word 漢 in a sentence of English', null],
  ['A note on π and λ in physics', null],
  ['港口的春天', 'Hani'],
  ['用 Rust 写一个解析器的方法', 'Hani'],
  ['港の春と船', 'Jpan'],
  ['カタカナ', 'Jpan'],
  ['항구의 봄', 'Kore'],
  ['ميناء في الربيع', 'Arab'],
  ['בנמל באביב', 'Hebr'],
  ['Гавань весной', 'Cyrl'],
  ['Το λιμάνι την άνοιξη', 'Grek'],
  ['वसंत में बंदरगाह', 'Deva'],
  ['ท่าเรือในฤดูใบไม้ผลิ', 'Thai'],
  ['நெடுந்துறை', 'Taml'],
];

for (const [text, script] of texts)
  test(`'${text}' is in ${script ?? 'Latin letters or none'}`, () =>
    assert.equal(scriptOf(text)?.code ?? null, script));

describeInstances('a post without a language', { once: true }, (the) => {
  test('that is not in Latin letters is shown in its script, and its author is offered a tag', async () => {
    const { key, blogUrl, client } = await the().agent('Ada');
    const page = async (slug: string) => (await open(the(), `${blogUrl}/${slug}`)).text;
    const publish = (body: object) =>
      the().call('POST', '/api/publish', { key, body: { status: 'published', ...body } });
    const written = assertOk(
      await publish({ title: 'ميناء', slug: 'port', content: 'ميناء في الربيع' }),
      201,
    );
    assert.deepEqual(written.at('warningCodes'), ['missing_lang']);
    assert.match(String(written.at('warnings.0')), /'ar'/);
    const port = await page('port');
    assert.match(port, /<h1[^>]* lang="und-Arab"/);
    assert.match(port, /<div class="text e-content" lang="und-Arab" dir="rtl"/);
    assert.doesNotMatch(port, /inLanguage/);
    // One that is named is what counts, and one in Latin letters says nothing.
    const named = assertOk(await publish({ slug: 'port', lang: 'fa', content: 'بندر' }));
    assert.deepEqual(named.at('warningCodes'), []);
    assert.match(await page('port'), /<h1[^>]* lang="fa"/);
    await client.publish({ title: 'Port', slug: 'latin', content: 'A port.', status: 'published' });
    assert.doesNotMatch(await page('latin'), /lang="und/);
  });
});
