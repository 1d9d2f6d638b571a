import { blocksOf, type Block } from "./blocks-of.ts";
import type { Fragment, Line } from "./fragment.ts";
import { linesOf } from "./lines-of.ts";
import { regionsOf, type Region } from "./regions-of.ts";

/** Heading levels that sizes are told apart as. */
const levelsMax = 3;

type Piece = Block | { kind: "table"; rows: string[][] };

/** Each page of a document as Markdown: headings by their size, lists, tables, and columns one after the other. */
export function markdownPages(pages: readonly (readonly Fragment[])[]): string[] {
  const bodySize = bodySizeOf(pages);
  const pieces = pages.map((fragments) => piecesOf(linesOf(fragments), bodySize));
  const levelOf = headingLevels(pieces.flat());
  return pieces.map((page) => textOf(page, levelOf));
}

/** Pages one after the other, an empty line between them; those without text are left out. */
export const joinPages = (pages: readonly string[]): string =>
  pages.filter((text) => text !== "").join("\n\n");

/** A document as Markdown. */
export const markdownOf = (pages: readonly (readonly Fragment[])[]): string =>
  joinPages(markdownPages(pages));

/** The size that most characters have. */
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

/** The level of each size of heading: the largest is the first; sizes that are nearly the same are one. */
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

/** Text that Markdown leaves as it is: nothing in it begins a heading, a quotation, code or a tag. */
function plainText(text: string): string {
  return text.replace(/<(?=[a-z/!?])/gi, "\\<").replace(/^(?=#{1,6}\s|>|```|~~~)/, "\\");
}
