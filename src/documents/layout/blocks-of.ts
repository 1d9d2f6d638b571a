import type { Segment } from "./fragment.ts";

/** A piece of running text as Markdown knows it. */
export type Block =
  | { kind: "paragraph"; text: string }
  | { kind: "heading"; text: string; size: number }
  | { kind: "item"; marker: string; text: string };

/** Type that is so much larger than the text's is a heading's. */
const headingFactor = 1.18;
const headingCharactersMax = 200;

/** A row that starts so much lower than its neighbours do, or than its own height, begins a paragraph. */
const looseFactor = 1.35;
const pitchMax = 2.6;

/** So few rows do not show how far apart rows stand here; single spacing is assumed of them. */
const fewRows = 4;
const pitchMaxOfFew = 1.9;

/** Bullets, and the signs that Tesseract takes small round ones for. */
const bulletPattern = /^(?:[•◦▪●○■□‣⁃∙·«»©®¢*+–—-]|\uf0b7|\u00b0)\s+(?=\S)/;
const numberPattern = /^(?:\((\d{1,3}|[a-z])\)|(\d{1,3}|[a-z])[.)])\s+(?=\S)/;

/** The blocks of lines that stand below each other; `bodySize` is the size of the document's text. */
export function blocksOf(lines: readonly Segment[], bodySize: number): Block[] {
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

/** Whether a line goes on with the block before it. */
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

/** A full sentence before, and a capital now: a new thought rather than the rest of the item. */
const startsAnew = (line: Segment, previous: Segment): boolean =>
  /[.:!?]$/.test(previous.text) || /^\p{Lu}/u.test(line.text);

/** Sizes of rows of one heading differ by what the letters in them happen to be. */
const isSameSize = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 0.12 * Math.max(one, other);

/** Two rows as running text: a word that was divided at the end of the first becomes whole. */
export function joinedText(first: string, second: string): string {
  const divided = /\p{Ll}[-\u00ad\u2010]$/u.test(first) && /^\p{Ll}/u.test(second);
  return divided ? first.slice(0, -1) + second : `${first} ${second}`;
}

/** The middle one of numbers, the smaller of two; Infinity of none, so that nothing is further apart. */
export function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Infinity;
}
