// A million mutated picture files, and what cleaning costs for each MiB: npm run fuzz:media. Writes fuzz-media.md.
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cleanPicture } from '../src/media/formats/clean-picture.ts';
import { fuzzPictures } from '../test/support/fuzz-pictures.ts';
import * as p from '../test/support/pictures.ts';
import { describeRun } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: fileURLToPath(new URL('./fuzz-media.md', import.meta.url)) },
  },
});

const size = 8 * 1024 * 1024;
const noise = randomBytes(size);
/** A JPEG whose scan is made of these bytes. */
const scanOf = (bytes: Buffer) => Buffer.concat([p.jpeg().subarray(0, -2), bytes, Buffer.from([0xff, 0xd9])]);
const many = (one: Buffer) => Buffer.alloc(size - (size % one.length), one);
/** As short as the limit of 10,000 parts allows. */
const part = Buffer.alloc(844);
/** An extension of a GIF made of these sub-blocks. */
const subBlocks = (label: number, block: Buffer) =>
  Buffer.concat([
    Buffer.from([0x21, label]),
    many(Buffer.concat([Buffer.from([block.length]), block])),
    Buffer.alloc(1),
  ]);

/** Large files, of the usual kind and of those that cost the most: each byte has to be looked at. */
const large: readonly (readonly [what: string, type: string, bytes: Buffer])[] = [
  ['JPEG', 'image/jpeg', scanOf(Buffer.from(noise.map((byte) => (byte === 0xff ? 0xfe : byte))))],
  ['JPEG of stuffed bytes alone', 'image/jpeg', scanOf(Buffer.alloc(size, Buffer.from([0xff, 0])))],
  ['JPEG of 9,800 comments', 'image/jpeg', p.jpeg([many(p.segment(0xfe, part))])],
  ['PNG', 'image/png', p.png([p.chunk('iCCP', noise)])],
  ['PNG of 9,800 text chunks', 'image/png', p.png([many(p.chunk('tEXt', part))])],
  ['GIF', 'image/gif', p.gif(1, [subBlocks(0xff, Buffer.alloc(255, 7))])],
  ['GIF of sub-blocks of one byte', 'image/gif', p.gif(1, [subBlocks(0xfe, Buffer.alloc(1))])],
  ['WebP', 'image/webp', p.webp(p.vp8x(0x20), p.riff('ICCP', noise), p.vp8)],
  ['WebP of 9,800 chunks', 'image/webp', p.webp(p.vp8x(0), p.vp8, many(p.riff('junk', part)))],
];

const costs: string[] = [];
for (const [what, type, bytes] of large) {
  const rounds: number[] = [];
  for (let round = 0; round < 5; round++) {
    const before = process.cpuUsage();
    await cleanPicture(p.pictureBytes(bytes), type, () => Promise.resolve());
    const { user, system } = process.cpuUsage(before);
    rounds.push((user + system) / 1000 / (bytes.length / 1024 ** 2));
  }
  costs.push(`| ${what} | ${rounds.toSorted((a, b) => a - b)[2]?.toFixed(1)} |`);
}

const begun = performance.now();
const rows: string[] = [];
const counts = await fuzzPictures(Number(values.files), Number(values.seed));
for (const [type, { accepted, refused }] of counts) rows.push(`| ${type} | ${accepted} | ${refused} |`);
const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
const text = [
  '# Picture files',
  '',
  'Written by `npm run fuzz:media`: small pictures of all formats with bits, lengths and parts changed, and with the',
  'CRCs of a PNG put right so that it is read further. It ends at the first error that is not the one for a file that',
  'is refused, and at the first result that cleaning again would change.',
  '',
  `- ${describeRun()}; seed ${values.seed}`,
  `- **${Number(values.files).toLocaleString('en-US')} files in ${minutes} minutes: no crash, no other error**`,
  '',
  '| type | accepted | refused |',
  '|---|---|---|',
  ...rows,
  '',
  'Processor time for each MiB, the median of five rounds over 8 MiB in memory; 10 ms is the most that is allowed:',
  '',
  '| file | ms per MiB |',
  '|---|---|',
  ...costs,
  '',
].join('\n');
process.stdout.write(text);
writeReport(values.out, text);
