import { gzipSync } from "node:zlib";
import { seededRandom } from "../../../end-to-end/process/support/seeded-random.ts";
import { latin, type HostileFile } from "./hostile-file.ts";

const random = seededRandom(11);
const noise = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));

/** The first bytes of each format that is read. */
const beginnings: Readonly<Record<string, Buffer>> = {
  png: latin("\x89PNG\r\n\x1a\n"),
  jpeg: latin("\xff\xd8\xff\xe0"),
  gif: latin("GIF89a"),
  webp: latin("RIFF\x20\0\0\0WEBP"),
  tiff: latin("II*\0"),
  bigTiff: latin("II+\0"),
  bmp: latin("BM"),
  pdf: latin("%PDF-1.7\n"),
};

/** Files of other types, under any name. */
const others: Readonly<Record<string, Uint8Array>> = {
  nothing: new Uint8Array(),
  "one byte": latin("x"),
  zeros: new Uint8Array(4_096),
  ones: new Uint8Array(4_096).fill(255),
  noise: noise(4_096),
  "a text that calls itself a PNG": latin("This is the text of a file named scan.png"),
  "a text in UTF-16": Buffer.from("\ufeffA text of sixteen bits", "utf16le"),
  "a page of the web": latin("<!doctype html><title>scan</title><img src='scan.png'>"),
  "a drawing in SVG": latin(
    "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'><text y='9'>hi</text></svg>",
  ),
  "a drawing that asks for a file": latin(
    "<!DOCTYPE x [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><svg><text>&f;</text></svg>",
  ),
  JSON: latin('{"image": "scan.png"}'),
  "a letter in RTF": latin("{\\rtf1\\ansi A letter}"),
  PostScript: latin("%!PS-Adobe-3.0\n(hello) show showpage"),
  "an archive": latin("PK\x03\x04\x14\0\0\0\b\0document.xml"),
  "a compressed file": gzipSync(latin("scan")),
  "a program": latin("\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"),
  "a film": latin("\0\0\0\x18ftypmp42\0\0\0\0mp42isom"),
  "a picture in AVIF": latin("\0\0\0\x1cftypavif\0\0\0\0avifmif1"),
  "a picture in HEIC": latin("\0\0\0\x18ftypheic\0\0\0\0heicmif1"),
  "a picture in JPEG 2000": latin("\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 "),
  "an icon": latin("\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0"),
  "a sound": latin("RIFF\x24\0\0\0WAVEfmt "),
  "a PSD": latin("8BPS\0\x01\0\0\0\0\0\0\0\x03"),
  "a script": latin("#!/bin/sh\nrm -rf /\n"),
};

/** Returns files of types that are not read, and files that only start like one that is. */
export function wrongTypes(): HostileFile[] {
  return [
    ...Object.entries(others).map(([name, bytes]): HostileFile => ({ name, bytes })),
    ...Object.entries(beginnings).flatMap(([format, bytes]): HostileFile[] => [
      { name: `the first bytes of a ${format} alone`, bytes },
      {
        name: `the first bytes of a ${format} before noise`,
        bytes: Buffer.concat([bytes, noise(2_048)]),
      },
      {
        name: `the first bytes of a ${format} before zeros`,
        bytes: Buffer.concat([bytes, Buffer.alloc(2_048)]),
      },
    ]),
  ];
}
