import {
  linesOf,
  regionsOf,
  type Fragment,
  type Line,
  type Region,
  type Segment,
} from "./regions-of.ts";

/** The heading levels that sizes are sorted into. */
const levelsMax = 3;

type Piece = Block | { kind: "table"; rows: string[][] };

/**
 * Returns each page of a document as Markdown: headings by size, lists, tables, and columns one
 * after another.
 */
export function markdownPages(pages: readonly (readonly Fragment[])[]): string[] {
  const bodySize = bodySizeOf(pages);
  const pieces = pages.map((fragments) => piecesOf(linesOf(fragments), bodySize));
  const levelOf = headingLevels(pieces.flat());
  return pieces.map((page) => textOf(page, levelOf));
}

/** Joins pages with an empty line in between; those without text are left out. */
export const joinPages = (pages: readonly string[]): string =>
  pages.filter((text) => text !== "").join("\n\n");

/** Returns a document as Markdown. */
export const markdownOf = (pages: readonly (readonly Fragment[])[]): string =>
  joinPages(markdownPages(pages));

/** Returns the size of most characters. */
function bodySizeOf(pages: readonly (readonly Fragment[])[]): number {
  const sized = pages
    .flat()
    .map(({ text, size }) => ({ size, count: text.trim().length }))
    .sort((one, other) => one.size - other.size);
  let left = sized.reduce((sum, { count }) => sum + count, 0) / 2;
  return sized.find(({ count }) => (left -= count) <= 0)?.size ?? 0;
}

function piecesOf(lines: readonly Line[], bodySize: number): Piece[] {
  return regionsOf(lines).flatMap((region) => piecesOfRegion(region, bodySize));
}

function piecesOfRegion(region: Region, bodySize: number): Piece[] {
  if (region.kind === "lines") return blocksOf(region.lines, bodySize);
  if (region.kind === "table") return [{ kind: "table", rows: region.rows }];
  return region.columns.flatMap((lines) => piecesOf(lines, bodySize));
}

/**
 * Returns a function from the size of a heading to its level. The largest is the first; sizes that
 * are nearly the same are one.
 */
function headingLevels(pieces: readonly Piece[]): (size: number) => number {
  const sizes = pieces
    .flatMap((piece) => (piece.kind === "heading" ? [piece.size] : []))
    .sort((one, other) => other - one);
  const steps: number[] = [];
  for (const size of sizes) if (size < 0.88 * (steps.at(-1) ?? Infinity)) steps.push(size);
  return (size) => Math.min(levelsMax, Math.max(1, steps.filter((step) => step >= size).length));
}

function textOf(pieces: readonly Piece[], levelOf: (size: number) => number): string {
  return pieces.reduce((text, piece, index) => {
    const tight = piece.kind === "item" && pieces[index - 1]?.kind === "item";
    return `${text}${index === 0 ? "" : tight ? "\n" : "\n\n"}${pieceText(piece, levelOf)}`;
  }, "");
}

function pieceText(piece: Piece, levelOf: (size: number) => number): string {
  if (piece.kind === "heading")
    return `${"#".repeat(levelOf(piece.size))} ${plainText(piece.text)}`;
  if (piece.kind === "item") return `${piece.marker} ${plainText(piece.text)}`;
  return piece.kind === "table" ? tableText(piece.rows) : plainText(piece.text);
}

function tableText(rows: readonly string[][]): string {
  const [head = [], ...body] = rows.map(
    (cells) => `| ${cells.map((cell) => plainText(cell).replaceAll("|", "\\|")).join(" | ")} |`,
  );
  const columns = rows[0]?.length ?? 0;
  return [head, `|${" --- |".repeat(columns)}`, ...body].join("\n");
}

/** Escapes text so that nothing in it starts a heading, a quotation, code or a tag in Markdown. */
function plainText(text: string): string {
  return text.replace(/<(?=[a-z/!?])/gi, "\\<").replace(/^(?=#{1,6}\s|>|```|~~~)/, "\\");
}

/** A block of running text, in Markdown's terms. */
type Block =
  | { kind: "paragraph"; text: string }
  | { kind: "heading"; text: string; size: number }
  | { kind: "item"; marker: string; text: string };

/** The factor by which a heading's type is larger than the text's. */
const headingFactor = 1.18;
const headingCharactersMax = 200;

/**
 * The factor by which a row's distance exceeds its neighbours', or its own height, where a
 * paragraph starts.
 */
const looseFactor = 1.35;
const pitchMax = 2.6;

/** The number of rows that is too small to show their spacing; single spacing is assumed. */
const fewRows = 4;
const pitchMaxOfFew = 1.9;

/** Matches bullets, and the signs as which Tesseract reads small round ones. */
const bulletPattern = /^(?:[•◦▪●○■□‣⁃∙·«»©®¢*+–—-]|\uf0b7|\u00b0)\s+(?=\S)/;
const numberPattern = /^(?:\((\d{1,3}|[a-z])\)|(\d{1,3}|[a-z])[.)])\s+(?=\S)/;

/** Returns the blocks of lines below each other; `bodySize` is the size of the document's text. */
function blocksOf(lines: readonly Segment[], bodySize: number): Block[] {
  const pitch =
    looseFactor *
    medianOf(lines.slice(1).map((line, index) => line.top - (lines[index] as Segment).top));
  const sizesMax = lines.length < fewRows ? pitchMaxOfFew : pitchMax;
  const isNear = (step: number, size: number): boolean => step <= Math.min(pitch, sizesMax * size);
  const blocks: Block[] = [];
  let previous: Segment | undefined;
  for (const line of lines) {
    const last = blocks.at(-1);
    const own = blockOf(line, bodySize);
    const goesOn =
      last !== undefined &&
      previous !== undefined &&
      continues({ last, own, line, previous, isNear });
    if (goesOn) last.text = joinedText(last.text, line.text);
    else blocks.push(own);
    previous = line;
  }
  return blocks;
}

function blockOf({ text, size }: Segment, bodySize: number): Block {
  const isLarge = size >= headingFactor * bodySize;
  if (isLarge && text.length <= headingCharactersMax && /\p{L}/u.test(text))
    return { kind: "heading", text, size };
  const bullet = bulletPattern.exec(text);
  if (bullet !== null) return { kind: "item", marker: "-", text: text.slice(bullet[0].length) };
  const number = numberPattern.exec(text);
  const label = number?.[1] ?? number?.[2];
  if (number === null || label === undefined) return { kind: "paragraph", text };
  const rest = text.slice(number[0].length);
  return /\d/.test(label)
    ? { kind: "item", marker: `${label}.`, text: rest }
    : { kind: "item", marker: "-", text: `${label}) ${rest}` };
}

/** Returns whether a line continues the block before it. */
function continues({
  last,
  own,
  line,
  previous,
  isNear,
}: {
  last: Block;
  own: Block;
  line: Segment;
  previous: Segment;
  isNear(step: number, size: number): boolean;
}): boolean {
  const step = line.top - previous.top;
  const near = step > 0 && isNear(step, Math.max(line.size, previous.size));
  if (last.kind === "heading")
    return own.kind === "heading" && isSameSize(own.size, last.size) && step <= 1.8 * line.size;
  if (own.kind !== "paragraph" || !near) return false;
  if (last.kind === "item") {
    const indent = line.left - previous.left;
    return indent > 0.3 * line.size || (indent >= -0.3 * line.size && !startsAnew(line, previous));
  }
  return line.left <= previous.left + 1.2 * line.size;
}

/** Returns whether a line starts a new block: it has a capital after a full sentence. */
const startsAnew = (line: Segment, previous: Segment): boolean =>
  /[.:!?]$/.test(previous.text) || /^\p{Lu}/u.test(line.text);

/**
 * Returns whether two sizes are those of one heading. Rows differ slightly by the letters in them.
 */
const isSameSize = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 0.12 * Math.max(one, other);

/**
 * Joins two rows of running text. A word that was hyphenated at the end of the first becomes whole.
 */
function joinedText(first: string, second: string): string {
  const divided = /\p{Ll}[-\u00ad\u2010]$/u.test(first) && /^\p{Ll}/u.test(second);
  return divided ? first.slice(0, -1) + second : `${first} ${second}`;
}

/**
 * Returns the median of numbers, the smaller of two; Infinity of none, so that nothing is further
 * apart.
 */
export function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Infinity;
}
