import type { Fragment } from "../layout/fragment.ts";

/** A page that was read, or its picture where somebody else is to read it. */
export type ReadPage = { fragments: Fragment[] } | { jpeg: Uint8Array };

/** What is done with a page that is a PNG. Throws `RefusedFile`. */
export type ReadPicture = (png: Uint8Array) => Promise<ReadPage>;
