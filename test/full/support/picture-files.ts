import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { apng, chunk, extension, gif, loopForever } from '../../support/pictures.ts';
import { displayProfile } from './display-profile.ts';

const run = promisify(execFile);

// Of ImageMagick's programs the one whose name nothing else has.
const programs = ['exiftool', 'pngcheck', 'jpeginfo', 'webpinfo', 'identify', 'cwebp', 'gif2webp'];
const has = (name: string) =>
  (process.env['PATH'] ?? '').split(':').some((path) => existsSync(join(path, name)));
const missing = programs.filter((name) => !has(name));
const packages = 'libimage-exiftool-perl pngcheck jpeginfo webp imagemagick';

/** Why these files cannot be made here; false where they can. */
export const withoutPrograms =
  missing.length === 0 ? false : `no ${missing.join(', ')}: apt-get install ${packages}`;
if (withoutPrograms) console.error(`SKIPPED: ${withoutPrograms}`);

/** Words that stand in what tells of place and person, and in no picture itself. */
export const personalWords = ['Lovelace', 'Difference Engine', 'Ockham'];

const personal = [
  '-GPSLatitude=51.5',
  '-GPSLatitudeRef=N',
  '-GPSLongitude=0.13',
  '-GPSLongitudeRef=W',
  '-Artist=Lovelace',
  '-Make=Difference Engine',
  '-Model=Difference Engine 2',
  '-SerialNumber=Difference Engine 7',
  '-MakerNoteUnknownText=Difference Engine notes',
  '-Comment=at Ockham',
  '-IPTC:City=Ockham',
  '-XMP:City=Ockham',
  '-XMP:Creator=Lovelace',
  '-XMP-iptcExt:DigitalSourceType=http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia',
];

const gradient = ['-size', '48x32', 'gradient:red-blue'];
/** Not the same when it is turned or mirrored. */
const odd = ['-seed', '7', '-size', '37x23', 'plasma:teal-gold'];
const frames = [...gradient, '(', '+clone', '-negate', ')', '(', '+clone', '-flip', ')', '-delay', '20'];
const half = ['-alpha', 'set', '-channel', 'A', '-evaluate', 'set', '50%'];

/** What ImageMagick makes, by name. */
const converted: Readonly<Record<string, readonly string[]>> = {
  'plain.jpg': odd,
  'progressive.jpg': [...odd, '-interlace', 'Plane'],
  'progressive-fine.jpg': [...odd, '-interlace', 'Line', '-sampling-factor', '1x1', '-quality', '97'],
  'coarse.jpg': [...odd, '-quality', '5'],
  'whole.jpg': [...odd, '-sampling-factor', '1x1', '-quality', '100'],
  'wide-sampling.jpg': [...odd, '-sampling-factor', '2x1'],
  'tall-sampling.jpg': [...odd, '-sampling-factor', '1x2'],
  'quarter-sampling.jpg': [...odd, '-sampling-factor', '4x1'],
  'grey.jpg': [...gradient, '-colorspace', 'Gray'],
  'grey-progressive.jpg': [...gradient, '-colorspace', 'Gray', '-interlace', 'Plane'],
  'cmyk.jpg': [...gradient, '-colorspace', 'CMYK'],
  'cmyk-progressive.jpg': [...gradient, '-colorspace', 'CMYK', '-interlace', 'Plane'],
  'dense.jpg': [...gradient, '-units', 'PixelsPerInch', '-density', '300'],
  'dot.jpg': ['-size', '1x1', 'xc:red'],
  'line.jpg': ['-size', '301x1', 'gradient:red-blue'],
  'large.jpg': ['-size', '640x480', 'plasma:red-blue'],
  'plain.png': [...odd, '-depth', '8'],
  'deep.png': [...gradient, '-depth', '16', '-define', 'png:color-type=2'],
  'deep-alpha.png': [...gradient, ...half, '-depth', '16', '-define', 'png:color-type=6'],
  'deep-grey.png': [...gradient, '-colorspace', 'Gray', '-depth', '16', '-define', 'png:color-type=0'],
  'palette.png': [...gradient, '-type', 'Palette'],
  'palette-4.png': [
    ...gradient,
    '-colors',
    '12',
    '-define',
    'png:bit-depth=4',
    '-define',
    'png:color-type=3',
  ],
  'palette-2.png': [...gradient, '-colors', '4', '-define', 'png:bit-depth=2', '-define', 'png:color-type=3'],
  'palette-1.png': [...gradient, '-colors', '2', '-define', 'png:bit-depth=1', '-define', 'png:color-type=3'],
  'see-through.png': [...gradient, '-colors', '8', '-transparent', 'red', '-define', 'png:color-type=3'],
  'black-and-white.png': [...gradient, '-monochrome'],
  'grey.png': [...gradient, '-colorspace', 'Gray'],
  'grey-alpha.png': [...gradient, '-colorspace', 'Gray', ...half, '-define', 'png:color-type=4'],
  'alpha.png': [...gradient, ...half],
  'interlaced.png': [...odd, '-interlace', 'PNG', '-set', 'Author', 'Lovelace'],
  'interlaced-deep.png': [...odd, '-interlace', 'PNG', '-depth', '16'],
  'linear.png': [...gradient, '-gamma', '2.2', '-define', 'png:include-chunk=gama,chrm'],
  'background.png': [...gradient, '-background', 'green', '-define', 'png:include-chunk=bkgd,phys'],
  'dot.png': ['-size', '1x1', 'xc:red'],
  'large.png': ['-size', '500x400', 'plasma:red-blue'],
  'one.gif': [...gradient, '-comment', 'at Ockham'],
  'old.gif': [...gradient, '-define', 'gif:version=87a'],
  'interlaced.gif': [...odd, '-interlace', 'GIF'],
  'see-through.gif': [...gradient, '-colors', '8', '-transparent', 'red'],
  'moving.gif': [...frames, '-loop', '0'],
  'moving-thrice.gif': [...frames, '-loop', '3', '-comment', 'at Ockham'],
  'moving-disposed.gif': [...frames, '-dispose', 'Background', '-loop', '0', '-layers', 'optimize'],
  'moving-previous.gif': [...frames, '-dispose', 'Previous', '-loop', '0'],
  'moving-palettes.gif': [
    '-delay',
    '5',
    '-seed',
    '7',
    '-size',
    '20x20',
    'plasma:red-blue',
    'plasma:lime-gold',
    '+map',
    '-loop',
    '0',
  ],
  'dot.gif': ['-size', '1x1', 'xc:red'],
};

/** What the programs of WebP make of those. */
const webps: Readonly<Record<string, readonly string[]>> = {
  'plain.webp': ['cwebp', 'plain.png'],
  'coarse.webp': ['cwebp', '-q', '5', 'large.png'],
  'sharp.webp': ['cwebp', '-sharp_yuv', '-m', '6', 'interlaced.png'],
  'lossless.webp': ['cwebp', '-lossless', 'interlaced.png'],
  'lossless-alpha.webp': ['cwebp', '-lossless', '-exact', 'alpha.png'],
  'near-lossless.webp': ['cwebp', '-near_lossless', '40', 'plain.png'],
  'palette.webp': ['cwebp', '-lossless', 'palette-4.png'],
  'alpha.webp': ['cwebp', 'alpha.png'],
  'alpha-raw.webp': ['cwebp', '-alpha_method', '0', 'alpha.png'],
  'alpha-coarse.webp': ['cwebp', '-alpha_q', '20', 'see-through.png'],
  'dot.webp': ['cwebp', 'dot.png'],
  'moving.webp': ['gif2webp', 'moving.gif'],
  'moving-lossy.webp': ['gif2webp', '-lossy', '-q', '40', 'moving-thrice.gif'],
  'moving-mixed.webp': ['gif2webp', '-mixed', 'moving-disposed.gif'],
  'moving-min.webp': ['gif2webp', '-min_size', '-loop_compatibility', 'moving-palettes.gif'],
};

/** What no program here writes. */
const written: Readonly<Record<string, Buffer>> = {
  'moving.png': apng(3),
  'moving-told.png': apng(4, [chunk('tEXt', 'Comment\0at Ockham')]),
  'moving-once.png': apng(1),
  'told-between.gif': gif(3, [loopForever, extension(0xfe, 'at Ockham')]),
};

/** A picture among the files: its path, and what it has to have afterwards. */
export type PictureFile = {
  readonly name: string;
  readonly orientation?: number;
  readonly hasProfile?: boolean;
  /** Whether place, maker, person and a digital source type were put in. */
  readonly isPersonal?: boolean;
};

/** Makes pictures of all kinds in a folder. */
export async function makePictureFiles(folder: string): Promise<PictureFile[]> {
  const inFolder = { cwd: folder };
  for (const [name, args] of Object.entries(converted)) await run('convert', [...args, name], inFolder);
  for (const [name, [program = '', ...args]] of Object.entries(webps))
    await run(program, ['-quiet', ...args, '-o', name], inFolder);
  for (const [name, bytes] of Object.entries(written)) writeFileSync(join(folder, name), bytes);
  await run('convert', ['-size', '16x12', 'gradient:red-blue', 'thumbnail.jpeg'], inFolder);
  writeFileSync(join(folder, 'display.icc'), displayProfile);

  const plain = [converted, webps, written].flatMap((made) => Object.keys(made));
  const exiftool = (names: readonly string[], ...tags: readonly string[]) =>
    run('exiftool', ['-q', '-m', '-overwrite_original', ...tags, ...names], inFolder);
  const copies = (prefix: string, names: readonly string[]) =>
    names.map((name) => {
      copyFileSync(join(folder, name), join(folder, `${prefix}-${name}`));
      return `${prefix}-${name}`;
    });

  const turned: PictureFile[] = [];
  for (let orientation = 1; orientation <= 8; orientation++) {
    const names = copies(`turned-${orientation}`, ['plain.jpg', 'plain.png', 'plain.webp']);
    await exiftool(
      names.slice(0, 1),
      ...personal,
      '-ThumbnailImage<=thumbnail.jpeg',
      `-IFD0:Orientation#=${orientation}`,
    );
    await exiftool(names.slice(1), ...personal, `-IFD0:Orientation#=${orientation}`);
    turned.push(...names.map((name) => ({ name, orientation, isPersonal: true })));
  }
  const profiled = copies('profile', [
    'plain.jpg',
    'progressive.jpg',
    'plain.png',
    'interlaced.png',
    'plain.webp',
    'alpha.webp',
  ]);
  await exiftool(profiled, '-ICC_Profile<=display.icc');
  const told = copies('told', [
    'cmyk.jpg',
    'progressive.jpg',
    'grey.jpg',
    'deep.png',
    'palette.png',
    'moving.png',
    'alpha.webp',
    'moving.webp',
  ]);
  await exiftool(told, ...personal);
  const toldGifs = copies('told', ['one.gif', 'moving.gif']);
  await exiftool(toldGifs, '-Comment=at Ockham', '-XMP:City=Ockham');
  return [
    ...plain.map((name) => ({ name })),
    ...turned,
    ...profiled.map((name) => ({ name, hasProfile: true })),
    ...told.map((name) => ({ name, isPersonal: true })),
    ...toldGifs.map((name) => ({ name })),
  ];
}

/** Pictures that the packages of this machine ship: of each type at most so many. */
export function shippedPictures(most: number): string[] {
  return ['jpg', 'png', 'gif', 'webp'].flatMap((type) => {
    const found = globSync(`/usr/share/**/*.${type}`).toSorted();
    const step = Math.max(1, found.length / most);
    return Array.from({ length: Math.min(most, found.length) }, (_, n) => found[Math.floor(n * step)] ?? '');
  });
}

/** The tags of files, by path, and what the programs for each type find wrong with them. */
export async function examineFiles(paths: readonly string[]) {
  const listed = JSON.parse(await say('exiftool', ['-j', '-a', '-G1', '-n'], paths)) as Tags[];
  const faults: string[] = [];
  for (const [type, program, option] of [
    ['jpg', 'jpeginfo', '--check'],
    ['png', 'pngcheck', '-q'],
    ['webp', 'webpinfo', '-quiet'],
  ] as const) {
    const said = await say(
      program,
      [option],
      paths.filter((path) => path.endsWith(`.${type}`)),
    );
    // jpeginfo reads no CMYK.
    const lines = said.split('\n').filter((line) => !/Unsupported color conversion/.test(line));
    faults.push(...lines.filter((line) => /error|warning|not a|corrupt/i.test(line)));
  }
  return { tags: new Map(listed.map((tags) => [tags.SourceFile, tags])), faults };
}

type Tags = { readonly SourceFile: string } & Readonly<Record<string, unknown>>;

/** What a program prints, whether it fails or not. */
async function say(program: string, options: readonly string[], paths: readonly string[]): Promise<string> {
  if (paths.length === 0) return '';
  const { stdout } = await run(program, [...options, ...paths], { maxBuffer: 1e8 }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}
