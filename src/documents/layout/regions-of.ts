/**
 * A piece of text and its place on a page, in any one unit of length from the upper left corner.
 */
export interface Fragment {
  text: string;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** The height of the type, by which headings are recognised. */
  size: number;
}

/** Scales a fragment to a page of another size. */
export const scaled = (
  { text, left, top, right, bottom, size }: Fragment,
  factor: number,
): Fragment => ({
  text,
  left: left * factor,
  top: top * factor,
  right: right * factor,
  bottom: bottom * factor,
  size: size * factor,
});

/** Fragments of one row without a gap between them: a line, or a cell of a table. */
export type Segment = Fragment;

/** The segments on one row, from left to right. */
export interface Line {
  segments: Segment[];
  top: number;
  bottom: number;
}

/** Returns the bounds of several pieces of text, and the largest of their sizes. */
function boundsOf(pieces: readonly Fragment[]): Omit<Fragment, "text"> {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity, size: 0 };
  for (const { left, top, right, bottom, size } of pieces) {
    bounds.left = Math.min(bounds.left, left);
    bounds.top = Math.min(bounds.top, top);
    bounds.right = Math.max(bounds.right, right);
    bounds.bottom = Math.max(bounds.bottom, bottom);
    bounds.size = Math.max(bounds.size, size);
  }
  return bounds;
}

/**
 * Gaps as fractions of the type's size: wider than any space between words, and as wide as the
 * narrowest of them.
 */
const segmentGap = 1.3;
const wordGap = 0.12;

/**
 * The most rows that a fragment may still belong to. Text comes nearly in order, so few are enough.
 */
const openRowsMax = 12;

interface Row {
  centre: number;
  size: number;
  fragments: Fragment[];
}

const centreOf = ({ top, bottom }: Fragment): number => (top + bottom) / 2;

/**
 * Returns the rows of a page from top to bottom, each divided where its gaps are wider than a
 * space.
 */
export function linesOf(fragments: readonly Fragment[]): Line[] {
  const rows: Row[] = [];
  const inOrder = fragments
    .filter(({ text }) => text.trim() !== "")
    .sort((one, other) => centreOf(one) - centreOf(other));
  for (const fragment of inOrder) {
    const centre = centreOf(fragment);
    const row = rows
      .slice(-openRowsMax)
      .find((each) => Math.abs(each.centre - centre) < 0.5 * Math.min(each.size, fragment.size));
    if (row === undefined) rows.push({ centre, size: fragment.size, fragments: [fragment] });
    else row.fragments.push(fragment);
  }
  return rows.map(({ fragments: found }) => {
    const segments = segmentsOf(found);
    const { top, bottom } = boundsOf(segments);
    return { segments, top, bottom };
  });
}

function segmentsOf(fragments: Fragment[]): Segment[] {
  const segments: Segment[] = [];
  for (const fragment of fragments.sort((one, other) => one.left - other.left)) {
    const last = segments.at(-1);
    const size = Math.max(last?.size ?? 0, fragment.size);
    if (last === undefined || fragment.left - last.right > segmentGap * size)
      segments.push({ ...fragment, text: fragment.text.trim() });
    else segments[segments.length - 1] = joined(last, fragment);
  }
  return segments;
}

function joined(left: Segment, right: Fragment): Segment {
  const apart = right.left - left.right > wordGap * right.size || /^\s/.test(right.text);
  return {
    ...boundsOf([left, right]),
    text: `${left.text}${apart ? " " : ""}${right.text.trim()}`,
  };
}

/** A part of a page that is read in one way: straight down, column after column, or row by row. */
export type Region =
  | { kind: "lines"; lines: Segment[] }
  | { kind: "columns"; columns: Line[][] }
  | { kind: "table"; rows: string[][]; top: number };

interface Gutter {
  left: number;
  right: number;
}

interface Band {
  lines: Line[];
  /** Vertical strips without text, all the way down. */
  gutters: Gutter[];
}

/** The smallest width of a gutter, as a fraction of the type's size. */
const gutterWidthMin = 0.5;

/** The distance of rows, in row heights, from which they belong to different bands. */
const bandGapMax = 3.5;

/**
 * The words per segment of columns of running text, and the share of the column's width that the
 * segments fill.
 */
const proseWordsMin = 4;
const proseFillMin = 0.6;

/** Returns the regions of a page, from top to bottom. */
export function regionsOf(lines: readonly Line[]): Region[] {
  const regions: Region[] = [];
  let index = 0;
  while (index < lines.length) {
    const band = bandFrom(lines, index);
    if (band === undefined) {
      pushLine(regions, lines[index] as Line);
      index += 1;
    } else {
      regions.push(regionOf(band));
      index += band.lines.length;
    }
  }
  return regions;
}

/** Adds a line outside of any band, which is read as a whole with all its gaps. */
function pushLine(regions: Region[], { segments }: Line): void {
  const line: Segment = { ...boundsOf(segments), text: segments.map(({ text }) => text).join(" ") };
  const last = regions.at(-1);
  if (last?.kind === "lines") last.lines.push(line);
  else regions.push({ kind: "lines", lines: [line] });
}

/**
 * Returns the lines from one on that have a gutter in common; undefined when they are too few to
 * tell.
 */
function bandFrom(lines: readonly Line[], start: number): Band | undefined {
  const first = lines[start] as Line;
  let gutters = gapsOf(first);
  if (gutters.length === 0) return undefined;
  const taken = [first];
  for (let index = start + 1; index < lines.length; index += 1) {
    const line = lines[index] as Line;
    const previous = taken.at(-1) as Line;
    if (line.top - previous.bottom > bandGapMax * (previous.bottom - previous.top)) break;
    const left = gutters.flatMap((gutter) => withoutText(gutter, line.segments));
    const killed = gutters.filter(
      (gutter) => !left.some((part) => part.left >= gutter.left && part.right <= gutter.right),
    ).length;
    if (
      left.length === 0 ||
      (killed > 0 && (line.segments.length === 1 || killed > gutters.length / 2))
    )
      break;
    taken.push(line);
    gutters = left;
  }
  const band = trimmed({ lines: taken, gutters });
  return band.lines.filter(({ segments }) => segments.length > 1).length < 2 ? undefined : band;
}

function gapsOf({ segments }: Line): Gutter[] {
  return segments
    .slice(1)
    .map((segment, index) => ({ left: (segments[index] as Segment).right, right: segment.left }));
}

/** Returns what remains of a gutter beside the text of a row. */
function withoutText(gutter: Gutter, segments: readonly Segment[]): Gutter[] {
  let parts = [gutter];
  for (const { left, right } of segments) {
    parts = parts.flatMap((part) =>
      right <= part.left || left >= part.right
        ? [part]
        : [
            { left: part.left, right: left },
            { left: right, right: part.right },
          ],
    );
  }
  const size = Math.max(...segments.map((segment) => segment.size));
  return parts.filter(({ left, right }) => right - left >= gutterWidthMin * size);
}

/**
 * Removes lines at the end that are in one column alone, unless the columns are running text: such
 * lines may not belong to the band.
 */
function trimmed(band: Band): Band {
  if (isProse(band)) return band;
  let end = band.lines.length;
  while (end > 0 && (band.lines[end - 1] as Line).segments.length === 1) end -= 1;
  return { ...band, lines: band.lines.slice(0, end) };
}

const columnOf = (gutters: readonly Gutter[], { left, right }: Segment): number =>
  gutters.filter((gutter) => (left + right) / 2 > (gutter.left + gutter.right) / 2).length;

const average = (numbers: readonly number[]): number =>
  numbers.reduce((sum, each) => sum + each, 0) / Math.max(1, numbers.length);

function isProse({ lines, gutters }: Band): boolean {
  const columns: Segment[][] = Array.from({ length: gutters.length + 1 }, () => []);
  for (const { segments } of lines)
    for (const segment of segments) columns[columnOf(gutters, segment)]?.push(segment);
  return columns.every((segments) => {
    if (segments.length === 0) return false;
    const { left, right } = boundsOf(segments);
    const words = average(segments.map(({ text }) => text.split(/\s+/).length));
    return (
      words >= proseWordsMin &&
      average(segments.map((segment) => (segment.right - segment.left) / (right - left))) >=
        proseFillMin
    );
  });
}

function regionOf(band: Band): Region {
  const { lines, gutters } = band;
  if (!isProse(band)) {
    const rows = lines.map(({ segments }) => {
      const cells = Array.from({ length: gutters.length + 1 }, () => "");
      for (const segment of segments) {
        const column = columnOf(gutters, segment);
        cells[column] = `${cells[column]} ${segment.text}`.trim();
      }
      return cells;
    });
    return { kind: "table", rows, top: (lines[0] as Line).top };
  }
  const columns = gutters.concat({ left: Infinity, right: Infinity }).map((_, column) =>
    lines.flatMap(({ segments }): Line[] => {
      const own = segments.filter((segment) => columnOf(gutters, segment) === column);
      return own.length === 0 ? [] : [{ ...boundsOf(own), segments: own }];
    }),
  );
  return { kind: "columns", columns };
}
