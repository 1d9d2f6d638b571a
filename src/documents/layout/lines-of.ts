import { boundsOf, type Fragment, type Line, type Segment } from "./fragment.ts";

/** Gaps as parts of the type's size: wider than any space between words, and as wide as the narrowest of them. */
const segmentGap = 1.3;
const wordGap = 0.12;

/** Rows that a fragment may still belong to; text comes nearly in order, so few are enough. */
const openRowsMax = 12;

interface Row {
  centre: number;
  size: number;
  fragments: Fragment[];
}

const centreOf = ({ top, bottom }: Fragment): number => (top + bottom) / 2;

/** The rows of a page from top to bottom, each cut where its gaps are wider than a space. */
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
