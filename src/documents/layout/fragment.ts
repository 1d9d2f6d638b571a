/** A piece of text where it stands on a page, in any one unit of length from the upper left corner. */
export interface Fragment {
  text: string;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** Height of the type, which headings are told by. */
  size: number;
}

/** A fragment where it stands on a page of another size. */
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

/** Everything on one row, from left to right. */
export interface Line {
  segments: Segment[];
  top: number;
  bottom: number;
}

/** The space that several pieces of text take together, and the largest of their sizes. */
export function boundsOf(pieces: readonly Fragment[]): Omit<Fragment, "text"> {
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
