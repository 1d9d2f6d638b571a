import type { Canvas } from "@napi-rs/canvas";
import sharp from "sharp";
import { drawPage, rows, type DrawnText } from "../../test/support/documents/draw-page.ts";
import { writePdf } from "../../test/support/documents/write-pdf.ts";
import { seeded } from "../../test/support/seeded.ts";

/** A file whose text is known. */
export interface KnownFile {
  kind: string;
  bytes: Uint8Array;
  /** In the order in which people read them. */
  words: readonly string[];
}

const vocabulary = (
  "the of and a to in is was that for it with as his on be at by had not are but from or have an they which one you were " +
  "all her she there would their we him been has when who will no more if out so up said what its about than into them can only other " +
  "time new some could these two may first then do any like my now over such our man me even most made after also well must before back " +
  "through years where much your way down should because long each just those people how too little state good very make world still " +
  "see own work men day get here old life both between being under three never know same last another while us off might great go come " +
  "since against right came take used himself few house use place during high without again home around small however found part school " +
  "thought went say general once upon every left war does invoice amount number paid station paper letter window"
).split(" ");

const wordsOfPage = 240;

/** A4 at 150 dots an inch; other resolutions are multiples of it. */
const [width, height] = [1_240, 1_754];
const typeSize = 24;

const draw = seeded(20);
const pick = (count: number): string[] =>
  Array.from({ length: count }, () => vocabulary[Math.floor(draw() * vocabulary.length)] ?? "");

/** Words in lines of so many characters at most. */
function linesOf(words: readonly string[], most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of words) {
    if (line !== "" && line.length + 1 + word.length > most) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

interface Page {
  words: readonly string[];
  texts: readonly DrawnText[];
}

function plainPage(): Page {
  const words = pick(wordsOfPage);
  return { words, texts: rows(linesOf(words, 78), { x: 120, y: 160, size: typeSize }) };
}

function columnsPage(): Page {
  const columns = [pick(wordsOfPage / 2), pick(wordsOfPage / 2)];
  return {
    words: columns.flat(),
    texts: columns.flatMap((words, column) =>
      rows(linesOf(words, 38), { x: 110 + column * 560, y: 160, size: typeSize }),
    ),
  };
}

function tablePage(): Page {
  const cells = Array.from({ length: 30 }, (_, row) => [
    ...pick(2),
    String(1_000 + row * 37),
    `${Math.floor(draw() * 900) + 100}.${row % 10}0`,
  ]);
  return {
    words: cells.flat(),
    texts: cells.flatMap((row, index) =>
      row.map((text, column) => ({
        text,
        x: 120 + column * 270,
        y: 160 + index * 44,
        size: typeSize,
      })),
    ),
  };
}

const scaledBy = (scale: number, { texts }: Page): Canvas =>
  drawPage({
    width: width * scale,
    height: height * scale,
    texts: texts.map(({ text, x, y, size = typeSize }) => ({
      text,
      x: x * scale,
      y: y * scale,
      size: size * scale,
    })),
  });

const pictureOf = ({ texts }: Page, degrees = 0): Canvas =>
  drawPage({ width, height, texts, degrees });

const pngOf = async (kind: string, page: Page): Promise<KnownFile> => ({
  kind,
  words: page.words,
  bytes: await pictureOf(page).encode("png"),
});

async function tiffOf(kind: string, page: Page): Promise<KnownFile> {
  const png = await scaledBy(2, page).encode("png");
  return {
    kind,
    words: page.words,
    bytes: await sharp(png).flatten().greyscale().tiff({ compression: "lzw" }).toBuffer(),
  };
}

/** Lines of a page in points, from the lower left. */
const printed = ({ texts }: Page) => ({
  texts: texts.map(({ text, x, y, size = typeSize }) => ({
    text,
    x: x * 0.48,
    y: 842 - y * 0.48,
    size: size * 0.48,
  })),
});

/** Generated files of each kind; the same ones each time. */
export async function knownFiles(): Promise<KnownFile[]> {
  const turned = plainPage();
  const ten = Array.from({ length: 10 }, plainPage);
  const scans = Array.from({ length: 10 }, plainPage);
  const jpegs = await Promise.all(
    scans.map(async (page) => ({ jpeg: await pictureOf(page).encode("jpeg", 80), width, height })),
  );
  return [
    await pngOf("plain text, A4 at 150 dpi", plainPage()),
    await pngOf("two columns", columnsPage()),
    await pngOf("table of 30 rows", tablePage()),
    {
      kind: "scan turned by 2 degrees, JPEG",
      words: turned.words,
      bytes: await pictureOf(turned, 2).encode("jpeg", 85),
    },
    await tiffOf("TIFF at 300 dpi", plainPage()),
    {
      kind: "PDF of ten pages, text",
      words: ten.flatMap(({ words }) => words),
      bytes: writePdf(ten.map(printed)),
    },
    {
      kind: "PDF of ten pages, scanned",
      words: scans.flatMap(({ words }) => words),
      bytes: writePdf(jpegs),
    },
  ];
}
