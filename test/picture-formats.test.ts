import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cleanPicture } from '../src/media/formats/clean-picture.ts';
import { orientationTiff } from '../src/media/formats/orientation.ts';
import { PictureError, removables } from '../src/media/formats/picture.ts';
import * as p from './support/pictures.ts';

const types = { jpeg: 'image/jpeg', png: 'image/png', gif: 'image/gif', webp: 'image/webp' } as const;

/** What cleaning makes of a file, after checking that it leaves its own result as it is. */
async function cleaned(bytes: Buffer, declared: string) {
  const result = await p.clean(bytes, declared);
  const again = await p.clean(result.bytes, declared);
  assert.deepEqual(again.removed, []);
  assert.ok(again.bytes.equals(result.bytes));
  assert.deepEqual(
    [again.width, again.height, again.animated],
    [result.width, result.height, result.animated],
  );
  return result;
}

async function refused(
  bytes: Buffer,
  declared: string,
  kind: PictureError['kind'],
  message: RegExp,
): Promise<void> {
  await assert.rejects(p.clean(bytes, declared), (error) => {
    assert.ok(error instanceof PictureError, String(error));
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    return true;
  });
}

const whole = { jpeg: p.jpeg(), png: p.png(), gif: p.gif(), webp: p.webp(p.vp8) };

describe('a picture', () => {
  for (const [format, type] of Object.entries(types)) {
    const bytes = whole[format as keyof typeof whole];

    test(`${format} without anything to take out stays as it is`, async () => {
      const result = await cleaned(bytes, type);
      assert.ok(result.bytes.equals(bytes));
      assert.deepEqual([result.type, result.removed, result.digitalSourceType], [type, [], null]);
    });

    test(`${format} that is cut off anywhere is refused, and nothing is written`, async () => {
      for (let length = 12; length < bytes.length; length++) {
        const written: Buffer[] = [];
        const cut = cleanPicture(p.pictureBytes(bytes.subarray(0, length)), type, (piece) => {
          written.push(piece);
          return Promise.resolve();
        });
        await assert.rejects(cut, (error) => error instanceof PictureError && error.kind === 'invalid');
        assert.deepEqual(written, [], `${length} bytes`);
      }
    });

    for (const tail of ['PK\x03\x04 a ZIP', '<script>alert(1)</script>', '<?php system("id"); ?>', '\0'])
      test(`${format} loses what follows its end: ${JSON.stringify(tail)}`, async () => {
        const result = await cleaned(Buffer.concat([bytes, Buffer.from(tail)]), type);
        assert.ok(result.bytes.equals(bytes));
        assert.deepEqual(result.removed, ['trailer']);
      });

    test(`${format} is refused under another type, which the message names`, async () => {
      for (const other of ['image/bmp', '', ...Object.values(types).filter((each) => each !== type)])
        await refused(bytes, other, 'unsupported', new RegExp(`Send them as ${type}\\.`));
      await cleaned(bytes, `${type.toUpperCase()}; q=1`);
    });
  }

  test('of another kind is refused, and the message names the four', async () => {
    const four = /image\/jpeg, image\/png, image\/gif and image\/webp/;
    await refused(Buffer.from('BM not one'), 'image/png', 'unsupported', four);
    await refused(Buffer.alloc(0), 'image/png', 'unsupported', /no bytes.*image\/jpeg/);
    await refused(
      Buffer.from('<svg xmlns="x"/>'),
      'image/svg+xml',
      'unsupported',
      /convert it to PNG.*image\/jpeg/,
    );
    await refused(Buffer.from('<?xml version="1.0"?><svg>'), 'image/png', 'unsupported', /convert it to PNG/);
  });

  test('is of 1 to 10,000 pixels a side, 50 megapixels and 1,000 frames at most', async () => {
    const sized = (width: number, height: number) => p.jpeg([], width, height);
    await cleaned(sized(10_000, 5000), types.jpeg);
    for (const [width, height] of [
      [10_001, 1],
      [1, 10_001],
      [10_000, 5001],
      [0, 1],
      [1, 0],
    ] as const) {
      await refused(
        sized(width, height),
        types.jpeg,
        'invalid',
        new RegExp(`${width} × ${height} pixels.*10,000`),
      );
      await refused(
        p.png([], [], width, height),
        types.png,
        'invalid',
        new RegExp(`${width} × ${height} pixels`),
      );
    }
    await refused(p.gif(1, [], '89a', [10_001, 2]), types.gif, 'invalid', /10001 × 2 pixels/);
    await refused(p.webp(p.vp8x(0, 10_001), p.vp8), types.webp, 'invalid', /10001 × 1 pixels/);
    for (const frames of [1000, 1001]) {
      const animations = [
        [p.gif(frames), types.gif],
        [p.apng(frames), types.png],
        [p.webp(p.vp8x(2), p.anim, ...Array.from({ length: frames }, () => p.anmf(p.vp8))), types.webp],
      ] as const;
      for (const [bytes, type] of animations)
        if (frames === 1000) assert.equal((await cleaned(bytes, type)).animated, true);
        else await refused(bytes, type, 'invalid', /more than 1,000 frames/);
    }
  });

  test('larger than a piece is read and written whole', async () => {
    const noise = Buffer.from(Array.from({ length: 700_001 }, (_, index) => (index * 7) % 255));
    const big = p.png([p.chunk('tEXt', noise)], [p.chunk('tEXt', noise)]);
    assert.ok((await cleaned(big, types.png)).bytes.equals(p.png()));
    const large = p.png([p.chunk('iCCP', noise), p.chunk('tEXt', 'Author\0Ada')]);
    assert.ok((await cleaned(large, types.png)).bytes.equals(p.png([p.chunk('iCCP', noise)])));
    const scan = Buffer.concat([whole.jpeg.subarray(0, -2), noise, Buffer.from([0xff, 0xd9])]);
    assert.ok((await cleaned(scan, types.jpeg)).bytes.equals(scan));
  });

  test('of more than 10,000 parts is refused', async () => {
    const many = (part: Buffer) => Buffer.alloc(part.length * 10_000, part);
    await refused(p.jpeg([many(p.segment(0xfe))]), types.jpeg, 'invalid', /10,000 parts/);
    await refused(p.png([many(p.chunk('tEXt'))]), types.png, 'invalid', /10,000 parts/);
    await refused(p.gif(1, [many(p.extension(0xfe))]), types.gif, 'invalid', /10,000 parts/);
    await refused(p.webp(p.vp8, many(p.riff('junk'))), types.webp, 'invalid', /10,000 parts/);
  });
});

describe('orientation', () => {
  const exif = (bytes: Buffer) => p.segment(0xe1, 'Exif\0\0', bytes);
  const least = (orientation: number) => orientationTiff(orientation);

  for (let orientation = 1; orientation <= 8; orientation++)
    test(`${orientation} is all that stays of EXIF, unless it is 1`, async () => {
      const sides = orientation >= 5 ? [4, 8] : [8, 4];
      for (const order of ['II', 'MM'] as const) {
        const before = p.tiff(orientation, order);
        const stays = orientation === 1 ? [] : [least(orientation)];
        const jpeg = await cleaned(p.jpeg([exif(before)], 8, 4), types.jpeg);
        assert.ok(jpeg.bytes.equals(p.jpeg(stays.map(exif), 8, 4)));
        const png = await cleaned(p.png([p.chunk('eXIf', before)]), types.png);
        assert.ok(png.bytes.equals(p.png(stays.map((tiff) => p.chunk('eXIf', tiff)))));
        // Browsers turn no PNG that says so behind its image, and no WebP.
        const late = await cleaned(p.png([], [p.chunk('eXIf', before)]), types.png);
        assert.ok(
          late.bytes.equals(
            p.png(
              [],
              stays.map((tiff) => p.chunk('eXIf', tiff)),
            ),
          ),
        );
        for (const prefix of ['', 'Exif\0\0']) {
          const webp = await cleaned(p.webp(p.vp8x(8), p.vp8, p.riff('EXIF', prefix, before)), types.webp);
          const expected = p.webp(
            p.vp8x(orientation === 1 ? 0 : 8),
            p.vp8,
            ...stays.map((tiff) => p.riff('EXIF', tiff)),
          );
          assert.ok(webp.bytes.equals(expected));
          assert.deepEqual(webp.removed, ['exif']);
        }
        assert.deepEqual([jpeg.width, jpeg.height, png.width, png.height], [...sides, ...sides]);
        assert.deepEqual([late.width, late.height], [8, 4]);
        assert.deepEqual([jpeg.removed, png.removed, late.removed], [['exif'], ['exif'], ['exif']]);
      }
    });

  test('is that of the first EXIF, and 1 where that cannot be read', async () => {
    const strange = [Buffer.from('junk'), p.tiff(0), p.tiff(9), p.tiff(6).subarray(0, 20), Buffer.alloc(0)];
    for (const first of [p.tiff(1), ...strange]) {
      const result = await cleaned(p.jpeg([exif(first), exif(p.tiff(6))], 8, 4), types.jpeg);
      assert.ok(result.bytes.equals(p.jpeg([], 8, 4)));
      const chunks = [first, p.tiff(6)].map((tiff) => p.chunk('eXIf', tiff));
      assert.ok((await cleaned(p.png(chunks), types.png)).bytes.equals(p.png()));
    }
    const far = Buffer.concat([Buffer.from('MM\0*\xff\xff\xff\xff', 'latin1'), Buffer.alloc(40)]);
    assert.ok((await cleaned(p.jpeg([exif(far)]), types.jpeg)).bytes.equals(p.jpeg()));
  });
});

describe('the digital source type', () => {
  const address = 'http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia';

  test('of XMP in JPEG, PNG and WebP is read, and the XMP goes', async () => {
    const files = [
      [p.jpeg([p.segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0', p.xmp())]), types.jpeg, p.jpeg()],
      [p.png([p.chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', p.xmp())]), types.png, p.png()],
      [p.png([], [p.chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', p.xmp())]), types.png, p.png()],
      [p.webp(p.vp8x(4), p.vp8, p.riff('XMP ', p.xmp())), types.webp, p.webp(p.vp8x(0), p.vp8)],
    ] as const;
    for (const [bytes, type, expected] of files) {
      const result = await cleaned(bytes, type);
      assert.ok(result.bytes.equals(expected));
      assert.deepEqual([result.digitalSourceType, result.removed], [address, ['xmp']]);
    }
  });

  test('is read in all the ways that programs write it, and nothing else is taken for it', async () => {
    const named = 'a:DigitalSourceType';
    const cases: [string, string | null][] = [
      [`<${named}>${address}</${named}>`, address],
      [`<${named}\n rdf:resource = '${address}'/>`, address],
      [`${named} = '${address}/'`, address],
      [`${named}="https${address.slice(4)}"`, address],
      [`${named}="trainedAlgorithmicMedia"`, address],
      [`${named}="" <${named}>${address}</${named}>`, address],
      [`${named}="http://example.org/x"`, null],
      [`${named}="${address}&quot;><script>"`, null],
      [`${named}="${address}`, null],
      [`DigitalSourceType="${address}"`, null],
      [named, null],
      [`${named}>`.repeat(2000), null],
    ];
    for (const [text, expected] of cases) {
      const result = await p.clean(p.png([p.chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', text)]), types.png);
      assert.equal(result.digitalSourceType, expected, text.slice(0, 80));
    }
    // What is compressed is not inflated.
    const packed = p.png([p.chunk('iTXt', 'XML:com.adobe.xmp\0\x01\0\0\0', p.xmp())]);
    assert.equal((await p.clean(packed, types.png)).digitalSourceType, null);
  });
});

test('JPEG keeps what its colours depend on, and loses all else', async () => {
  const jfif = p.segment(0xe0, 'JFIF\0\x01\x02\0\0\x01\0\x01\0\0');
  const adobe = p.segment(0xee, 'Adobe\0\x64\0\0\0\0\x02');
  const icc = p.segment(0xe2, 'ICC_PROFILE\0\x01\x01', 'profile');
  const kept = p.jpeg([jfif, adobe, icc]);
  assert.ok((await cleaned(kept, types.jpeg)).bytes.equals(kept));
  const cases = [
    ['thumbnail', jfif, p.segment(0xe0, 'JFIF\0\x01\x02\0\0\x01\0\x01\x01\x01', 'rgb')],
    ['thumbnail', null, p.segment(0xe0, 'JFXX\0\x10', 'thumbnail')],
    ['iptc', null, p.segment(0xed, 'Photoshop 3.0\0', '8BIM')],
    ['comment', null, p.segment(0xfe, 'made by Ada')],
    ['mpf', null, p.segment(0xe2, 'MPF\0', 'index')],
    ['c2pa', null, p.segment(0xeb, 'JP\0\x01', 'manifest')],
    ['xmp', null, p.segment(0xe1, 'http://ns.adobe.com/xmp/extension/\0', 'more')],
    ['other', adobe, p.segment(0xee, 'Adobe\0\x64\0\0\0\0\x02', 'more')],
    ['other', null, p.segment(0xec, 'Ducky')],
    ['other', null, p.segment(0xe0, 'AVI1')],
  ] as const;
  for (const [word, after, before] of cases) {
    const result = await cleaned(p.jpeg([before]), types.jpeg);
    assert.deepEqual(result.removed, [word]);
    assert.ok(result.bytes.equals(p.jpeg(after === null ? [] : [after])), word);
  }
  const all = await cleaned(p.jpeg(cases.map(([, , before]) => before)), types.jpeg);
  assert.deepEqual(
    all.removed,
    removables.filter((word) => cases.some(([named]) => named === word)),
  );
  // Fill bytes may stand before a marker.
  const filled = Buffer.concat([kept.subarray(0, 2), Buffer.from([0xff, 0xff]), kept.subarray(2)]);
  assert.ok((await cleaned(filled, types.jpeg)).bytes.equals(kept));
});

test('JPEG is followed marker by marker', async () => {
  const bytes = p.jpeg();
  const from = bytes.indexOf(Buffer.from([0xff, 0xc0]));
  const scan = bytes.indexOf(Buffer.from([0xff, 0xda]));
  const changed = (at: number, ...values: number[]) => {
    const copy = Buffer.from(bytes);
    copy.set(values, at);
    return copy;
  };
  const cases: [Buffer, RegExp][] = [
    [changed(from + 1, 0xc3), /browsers do not show/],
    [changed(from + 1, 0xc9), /browsers do not show/],
    [changed(from + 4, 12), /12 bits a sample/],
    [changed(from + 9, 2), /2 colours/],
    [changed(from, 0), /byte \d+: a marker/],
    [changed(from + 1, 0xd8), /second picture/],
    [changed(from + 1, 0x02), /FF 02 has no place/],
    [changed(from + 2, 0, 1), /length of segment FF C0 is 1/],
    [changed(scan + 4, 3), /head of a scan/],
    [Buffer.concat([bytes.subarray(0, from), bytes.subarray(scan)]), /before its frame/],
    [Buffer.concat([bytes.subarray(0, scan), Buffer.from([0xff, 0xd9])]), /before its first scan/],
    [Buffer.concat([bytes.subarray(0, scan), bytes.subarray(from)]), /second frame/],
    [
      Buffer.concat([bytes.subarray(0, -2), ...Array.from({ length: 500 }, () => bytes.subarray(scan, -2))]),
      /500 scans/,
    ],
  ];
  for (const [file, message] of cases) await refused(file, types.jpeg, 'invalid', message);
  // Stuffed bytes and restarts belong to the scan; tables and comments may stand between scans.
  const inside = Buffer.from([0xff, 0, 0xff, 0xd0, 1, 0xff, 0xd7, 0xff, 0xff, 0]);
  const two = (...between: Buffer[]) =>
    Buffer.concat([
      bytes.subarray(0, -2),
      inside,
      ...between,
      bytes.subarray(scan, -2),
      Buffer.from([0xff, 0xd9]),
    ]);
  assert.ok((await cleaned(two(p.segment(0xfe, 'x')), types.jpeg)).bytes.equals(two()));
});

test('PNG keeps what its colours depend on, and loses all else', async () => {
  const kept = ['gAMA', 'cHRM', 'iCCP', 'sBIT', 'pHYs', 'cICP'].map((type) => p.chunk(type, '1234'));
  const cases: [string, Buffer][] = [
    ['text', p.chunk('tEXt', 'Author\0Ada')],
    ['text', p.chunk('zTXt', 'Author\0\0packed')],
    ['text', p.chunk('iTXt', 'Author\0\0\0\0\0Ada')],
    ['time', p.chunk('tIME', '1234567')],
    ['c2pa', p.chunk('caBX', 'manifest')],
    ['other', p.chunk('prVt', 'anything')],
    ['other', p.chunk('fcTL', 'without acTL')],
    ['other', p.chunk('gAMA', '<p>hello')],
    ['other', p.chunk('sRGB', '12')],
    ['other', p.chunk('tRNS', 'x'.repeat(257))],
  ];
  for (const [word, chunk] of cases)
    for (const [before, after] of [
      [[chunk], []],
      [[], [chunk]],
    ]) {
      const result = await cleaned(p.png([...kept, ...(before ?? [])], after), types.png);
      assert.deepEqual(result.removed, [word]);
      assert.ok(result.bytes.equals(p.png(kept)));
    }
  const animation = await cleaned(p.apng(3, [p.chunk('tEXt', 'a\0b')]), types.png);
  assert.ok(animation.bytes.equals(p.apng(3)));
  assert.equal(animation.animated, true);
  assert.equal((await cleaned(p.apng(1), types.png)).animated, false);
});

test('PNG is followed chunk by chunk', async () => {
  const bytes = p.png();
  for (let at = 8; at < bytes.length; at++) {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 0x10;
    await assert.rejects(p.clean(copy, types.png), PictureError, `byte ${at}`);
  }
  const palette = p.png([p.chunk('PLTE', 'rgb')]);
  const header = (text: string) =>
    Buffer.concat([bytes.subarray(0, 8), p.chunk('IHDR', text), bytes.subarray(33)]);
  const cases: [Buffer, RegExp][] = [
    [header('\0\0\0\x08\0\0\0\x04\x10\x03\0\0\0'), /kind of PNG/],
    [header('\0\0\0\x08\0\0\0\x04\x08\x03\0\0\0'), /needs a palette/],
    [header('short'), /IHDR of 13 bytes/],
    [p.png([p.chunk('PLTE', 'rgbr')]), /palette/],
    [p.png([p.chunk('PLTE', 'rgb'), p.chunk('PLTE', 'rgb')]), /palette/],
    [p.png([p.chunk('CgBI', '1234')]), /CgBI has no place/],
    [p.png([], [p.chunk('tEXt'), p.chunk('IDAT')]), /between its IDAT/],
    [Buffer.concat([bytes.subarray(0, 33), p.chunk('IEND')]), /before its image/],
    [Buffer.concat([bytes.subarray(0, -12), p.chunk('IEND', 'x')]), /not empty/],
    [p.png([p.chunk('acTL', '\0\0\0\x02\0\0\0\0')]), /2 frames, of which 0/],
    [p.png([p.chunk('acTL', '\0\0\0\0\0\0\0\0')]), /names no frames/],
    [p.apng(2, [p.chunk('fdAT', '\0\0\0\x09')]), /should be 3/],
    [p.apng(2, [p.chunk('fcTL', '\0\0\0\x03')]), /no data/],
  ];
  for (const [file, message] of cases) await refused(file, types.png, 'invalid', message);
  await cleaned(palette, types.png);
});

test('GIF keeps its loop and colour profile, and loses all else', async () => {
  const control = p.extension(0xf9, '\0\0\0\0');
  const kept = [p.loopForever, p.extension(0xff, 'ICCRGBG1012', 'profile'), control];
  for (const version of ['87a', '89a']) {
    const result = await cleaned(p.gif(2, kept, version), types.gif);
    assert.ok(result.bytes.equals(p.gif(2, kept, version)));
    assert.deepEqual([result.width, result.height, result.animated], [2, 2, true]);
  }
  const loop = p.extension(0xff, 'NETSCAPE2.0', '\x01\x05\0');
  const cases: [string, Buffer | null, Buffer][] = [
    ['comment', null, p.extension(0xfe, 'made by Ada', 'in Rome')],
    ['xmp', null, p.extension(0xff, 'XMP DataXMP', '<x:xmpmeta/>')],
    ['text', null, p.extension(0x01, '123456789012', 'shown by nobody')],
    ['other', null, p.extension(0xff, 'ANYTHING1.0', 'x')],
    ['other', null, p.extension(0x99, 'x')],
    ['other', loop, p.extension(0xff, 'NETSCAPE2.0', '\x01\x05\0', 'and more')],
    ['other', null, p.extension(0xff, 'NETSCAPE2.0', '\x02\0\0\0\0')],
  ];
  for (const [word, after, before] of cases) {
    const result = await cleaned(p.gif(1, [before]), types.gif);
    assert.deepEqual(result.removed, [word]);
    assert.ok(result.bytes.equals(p.gif(1, after === null ? [] : [after])), word);
  }
  // As browsers do it, the first image may widen the screen.
  const small = await cleaned(p.gif(1, [], '89a', [1, 1]), types.gif);
  assert.deepEqual([small.width, small.height], [2, 2]);
});

test('GIF is followed block by block', async () => {
  const bytes = p.gif();
  const image = bytes.indexOf(',');
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(bytes);
    copy[at] = value;
    return copy;
  };
  await refused(changed(image, 0x77), types.gif, 'invalid', /a block should begin/);
  await refused(changed(image, 0x3b), types.gif, 'invalid', /before its first image/);
  await refused(changed(image + 10, 12), types.gif, 'invalid', /codes of 12 bits/);
  await refused(p.gif(1, [p.extension(0xf9, '123')]), types.gif, 'invalid', /graphic control/);
});

test('WebP keeps its colour profile, alpha and animation, and loses all else', async () => {
  const profile = p.riff('ICCP', 'odd');
  const alpha = p.riff('ALPH', 'x');
  const files = [
    p.webp(p.vp8),
    p.webp(p.vp8l),
    p.webp(p.vp8x(0x30), profile, alpha, p.vp8),
    p.webp(p.vp8x(0x22), profile, p.anim, p.anmf(alpha, p.vp8), p.anmf(p.vp8l)),
  ];
  for (const file of files) assert.ok((await cleaned(file, types.webp)).bytes.equals(file));
  const dirty = p.webp(
    p.vp8x(0x2e),
    profile,
    p.riff('abcd', 'x'),
    p.anim,
    p.anmf(p.riff('abcd', 'x'), p.vp8, p.vp8),
    p.anmf(p.vp8l),
    p.riff('EXIF', p.tiff(1)),
    p.riff('XMP ', '<x/>'),
    p.riff('EXIF', p.tiff(3)),
    p.vp8,
  );
  const result = await cleaned(dirty, types.webp);
  const exif = p.riff('EXIF', orientationTiff(3));
  assert.ok(result.bytes.equals(p.webp(p.vp8x(0x2a), profile, p.anim, p.anmf(p.vp8), p.anmf(p.vp8l), exif)));
  assert.deepEqual([result.removed, result.animated], [['exif', 'xmp', 'other'], true]);
  // Without VP8X a decoder leaves alone what follows the image; a profile without its flag, too.
  assert.ok((await cleaned(p.webp(p.vp8, p.riff('EXIF', 'x')), types.webp)).bytes.equals(p.webp(p.vp8)));
  const bare = p.webp(p.vp8x(0), p.vp8);
  assert.ok(
    (await cleaned(p.webp(p.vp8x(0xff & ~0x32), profile, p.vp8), types.webp)).bytes.length === bare.length,
  );
});

test('WebP is followed chunk by chunk, and its sizes agree', async () => {
  const resized = (bytes: Buffer, at: number, by: number) => {
    const copy = Buffer.from(bytes);
    copy.writeUInt32LE(copy.readUInt32LE(at) + by, at);
    return copy;
  };
  const still = p.webp(p.vp8);
  const frame = p.webp(p.vp8x(2), p.anim, p.anmf(p.vp8));
  const cases: [Buffer, RegExp][] = [
    [resized(still, 4, 2), /cut off/],
    [resized(still, 4, -2), /more than its container/],
    [resized(still, 16, 2), /more than its container/],
    [resized(frame, frame.indexOf('ANMF') + 4, 2), /more than its container/],
    [resized(frame, frame.indexOf('ANMF') + 4, -2), /more than its container/],
    [p.webp(p.vp8x(0, 2), p.vp8), /1 × 1 pixels where 2 × 1/],
    [p.webp(p.vp8x(0)), /before its image/],
    [p.webp(p.vp8x(2), p.anim), /before its first frame/],
    [p.webp(p.vp8x(2), p.anim, p.anmf()), /no image/],
    [p.webp(p.vp8x(2), p.anim, p.riff('ANMF', 'short')), /shorter than its head/],
    [p.webp(p.vp8x(2), p.riff('ANIM', 'x'), p.anmf(p.vp8)), /ANIM is not of 6/],
    [p.webp(p.vp8x(0x10), p.riff('ALPH', 'x'), p.riff('ALPH', 'x'), p.vp8), /second chunk ALPH/],
    [p.webp(p.vp8x(0x10), p.riff('ALPH', 'x'), p.vp8l), /its own alpha/],
    [p.webp(p.riff('VP8 ', 'nothing at all')), /head of its image/],
    [p.webp(p.riff('VP8L', 'nothing at all')), /head of its image/],
    [p.webp(p.riff('JUNK', 'x'), p.vp8), /first chunk/],
    [p.webp(p.vp8, Buffer.from('ab')), /a chunk should begin/],
  ];
  for (const [file, message] of cases) await refused(file, types.webp, 'invalid', message);
});
