import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excerptOf } from '../src/markdown/write/tokens.ts';
import { sentenceEnd } from '../src/rules/text/sentences.ts';

/** `|` is where the last sentence of the first hundred characters ends; the rest fills them up. */
const ended = [
  'The fox sleeps by the river, all day long, in the sun.| We met Mr. Fox',
  'The fox sleeps by the river, all day long, in the sun.| Then Prof. Dr. J. R. Fox',
  'The fox sleeps by the river, all day long, in the sun.| Its food, e.g. Berries, or',
  'The fox sleeps by the river, all day long, in the sun.| The U.S. Fox does, cf. Fig. 5 or No. 7',
  'The fox sleeps by the river, all day long, in the sun.| "Really?" asks the dog... and the cat',
  'The fox sleeps by the river, all day long, in the sun (see Fig. 3).| It',
  'The fox sleeps by the river, all day long, with Node 24.15.| It was on Jan. 5 that',
  'The fox said to the river, all day long, “Stop!” No.| We',
  'Der Fuchs schläft den lieben langen Tag lang am Fluss.| Man nimmt z. B. Holz, ca. Mitte des 2. Jahres',
  'Le renard dort toute la journée au bord de la rivière.| Puis M. Dupont et Mme. Dupont, p. ex. Anne',
  'नदी के किनारे एक लोमड़ी सोती है, और वह सारा दिन सोती है।| वह',
  'الثعلب ينام طوال اليوم على ضفة النهر تحت أشعة الشمس، أليس كذلك؟| هو',
  `狐は川辺で眠る。${'彼は「もう行こう。」と言った。'.repeat(4)}|彼は「行こう。」と`,
  `他说：“走吧。”${'然后他就离开了这里！'.repeat(6)}|他`,
];

for (const marked of ended) {
  const [sentence = '', rest = ''] = marked.split('|');
  test(`ends '${rest.trim() || sentence.slice(-12)}' at no sign within it`, () => {
    const isSpaced = rest.startsWith(' ');
    const text = `${sentence}${rest}${isSpaced ? ' ' : ''}${(isSpaced ? 'on and ' : '狐').repeat(60)}`;
    assert.equal(excerptOf(text, 100), sentence);
  });
}

test('a number or an address that is cut has not ended', () => {
  for (const word of ['3.14159265358979', 'https://example.com/?q=1.2!3', '24.15.0']) {
    for (let cut = 1; cut < word.length; cut++) {
      const text = `${'x'.repeat(99 - cut)} ${word} ${'and more '.repeat(20)}`;
      assert.match(excerptOf(text, 100), /…$/, `${word} cut at ${cut}`);
    }
  }
});

test('a sign ends a sentence of Latin letters alone where it does beside others', () => {
  for (let code = 0x21; code < 0x3100; code++) {
    const text = `The fox sleeps by the river all day${String.fromCharCode(code)} Then it goes home`;
    const place = text.length;
    assert.equal(sentenceEnd(text, place), sentenceEnd(`${text} 狐`, place), code.toString(16));
  }
});
