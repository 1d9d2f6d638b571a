import { z } from "zod";
import { lazily } from "../../http/endpoint.ts";
import { badField, type GatewayError } from "../../platform/kernel/errors.ts";

/** The parameters of paged lists. */
export const pageParameters = {
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, "must be a whole number from 1 to 999")
    .optional()
    .describe("Maximum number of entries on a page. Default: all."),
  cursor: z
    .string()
    .max(2_000)
    .optional()
    .describe("The `next_cursor` of the previous page, with the same filters and order."),
  offset: z
    .string()
    .regex(/^\d{1,7}$/, "must be a whole number from 0 to 9999999")
    .optional()
    .describe("Number of entries to leave out, where no cursor is sent."),
};

/** The query of a list that has no filters. */
export const pageQuery = z.object(pageParameters);

/** The members of an answer that is one page; absent where the list is answered whole. */
export const placeFields = lazily(() => ({
  has_more: z
    .boolean()
    .optional()
    .describe("Whether another page follows; absent without `limit`."),
  next_cursor: z
    .string()
    .nullable()
    .optional()
    .describe("Cursor of the next page, to send as `cursor`; absent without `limit`."),
}));

/** The entries on a page of a list that is never answered whole, by default and at most. */
const entryPage = { usual: 50, most: 200 } as const;

/** The parameters of such a list, as documents show them. */
export const entryParameters = {
  limit: z
    .string()
    .optional()
    .describe(
      `Number of entries on a page. Default ${entryPage.usual}, at most ${entryPage.most}.`,
    ),
  cursor: z.string().optional().describe("The `next_cursor` of the previous page."),
  offset: z
    .string()
    .optional()
    .describe("Number of entries to leave out, where no cursor is sent."),
};

/** The answer of such a list. */
export const listSchema = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal("list"),
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  });

/** Returns the `limit` of such a list. Throws `bad_request`. */
export function entryLimit(query: URLSearchParams): number {
  const { usual, most } = entryPage;
  const limit = Number(query.get("limit") ?? usual);
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
  throw badField("limit", `must be a whole number from 1 to ${most}.`);
}

interface PageQuery {
  limit?: string | undefined;
  cursor?: string | undefined;
  offset?: string | undefined;
}

interface Page<Row> {
  data: Row[];
  place: { has_more?: boolean; next_cursor?: string | null };
}

/** Returns the refusal of a cursor that belongs to no entry of a list. */
export const unknownCursor = (): GatewayError =>
  badField("cursor", "names no entry of this list. Leave it out for the first page.");

type Rank = number | string;

/** The order of a list: by the ranks of its rows. */
export interface ListOrder<Row> {
  rankOf(row: Row): Rank;
  /** Compares two ranks of this list; negative if the first one is earlier in it. */
  compare(one: Rank, other: Rank): number;
}

/** Compares ranks for lists whose lowest one is first. */
export const ascending = (one: Rank, other: Rank): number =>
  one < other ? -1 : Number(one > other);

/** Compares ranks for lists whose highest one is first. */
export const descending = (one: Rank, other: Rank): number => ascending(other, one);

/** Returns a text that sorts by a time in milliseconds, and by an id within one millisecond. */
export const timeRank = (atMs: number, id: string): string =>
  `${String(atMs).padStart(15, "0")} ${id}`;

const cursorPattern = z.tuple([z.string(), z.union([z.string(), z.number()])]);

/** Returns a cursor: the id and the rank of the last row of a page. */
const cursorOf = (id: string, rank: Rank): string =>
  Buffer.from(JSON.stringify([id, rank])).toString("base64url");

/** Returns the id and the rank that a cursor names. Throws `bad_request`. */
function readCursor(cursor: string): [id: string, rank: Rank] {
  const text = Buffer.from(cursor, "base64url").toString();
  try {
    return cursorPattern.parse(JSON.parse(text));
  } catch {
    throw unknownCursor();
  }
}

/**
 * Returns the number of rows up to the one that a cursor names. If that row was removed since, or
 * no longer meets the filters, those are the rows before its place; rows of the same rank are
 * listed again rather than left out. Throws `bad_request` for a cursor of another order.
 */
function rowsBefore<Row>(
  rows: readonly Row[],
  cursor: string,
  { idOf, order }: { idOf: (row: Row) => string; order: ListOrder<Row> },
): number {
  const [id, rank] = readCursor(cursor);
  const at = rows.findIndex((row) => idOf(row) === id);
  if (at >= 0) return at + 1;
  if (rows.some((row) => typeof order.rankOf(row) !== typeof rank)) throw unknownCursor();
  const next = rows.findIndex((row) => order.compare(order.rankOf(row), rank) >= 0);
  return next < 0 ? rows.length : next;
}

/**
 * Returns the rows after the one that the cursor names, and the cursor of the next page. Throws
 * `bad_request` where the cursor is none of this list.
 */
export function pageOf<Row>(
  rows: readonly Row[],
  { limit, cursor, offset = "0" }: PageQuery,
  parts: { idOf: (row: Row) => string; order: ListOrder<Row> },
): Page<Row> {
  const start = cursor === undefined ? Number(offset) : rowsBefore(rows, cursor, parts);
  if (limit === undefined) return { data: rows.slice(start), place: {} };
  return cutPage(rows.slice(start, start + 1 + Number(limit)), Number(limit), (row) =>
    cursorOf(parts.idOf(row), parts.order.rankOf(row)),
  );
}

/** Returns a page of rows, given one more row than the page holds if there is a next page. */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
  cursorOfRow: (row: Row) => string,
): Page<Row> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { data, place: { has_more: more, next_cursor: more ? cursorOfRow(last) : null } };
}
