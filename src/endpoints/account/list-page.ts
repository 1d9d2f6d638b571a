import { z } from "zod";
import { lazily } from "../../http/endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** Parameters of lists that come in pages. */
export const pageParameters = {
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, "must be a whole number from 1 to 999")
    .optional()
    .describe("Entries on a page; all unless it is given."),
  cursor: z
    .string()
    .max(200)
    .optional()
    .describe("next_cursor of the page before, with the same filters and order."),
};

/** The query of a list that has no filters. */
export const pageQuery = z.object(pageParameters);

/** Members of an answer that is one page; absent where the list is answered whole. */
export const placeFields = lazily(() => ({
  has_more: z.boolean().optional().describe("Whether another page follows; absent without limit."),
  next_cursor: z
    .string()
    .nullable()
    .optional()
    .describe("Sent as cursor, gives the next page; absent without limit."),
}));

interface PageQuery {
  limit?: string | undefined;
  cursor?: string | undefined;
}

interface Page<Row> {
  data: Row[];
  place: { has_more?: boolean; next_cursor?: string | null };
}

/** Returns the refusal of a cursor that belongs to no entry of a list. */
export const unknownCursor = (): GatewayError =>
  new GatewayError(
    "bad_request",
    "cursor: names no entry of this list. Leave it out for the first page.",
    { param: "cursor" },
  );

/**
 * Returns the rows after the one that the cursor names, and where the list goes on. Throws
 * `bad_request` where the cursor names none.
 */
export function pageOf<Row>(
  rows: readonly Row[],
  { limit, cursor }: PageQuery,
  idOf: (row: Row) => string,
): Page<Row> {
  const at = cursor === undefined ? -1 : rows.findIndex((row) => idOf(row) === cursor);
  if (cursor !== undefined && at < 0) throw unknownCursor();
  if (limit === undefined) return { data: rows.slice(at + 1), place: {} };
  return cutPage(rows.slice(at + 1, at + 2 + Number(limit)), Number(limit), idOf);
}

/** Returns a page of rows of which one more than wanted was read, if there was one. */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
  idOf: (row: Row) => string,
): Page<Row> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { data, place: { has_more: more, next_cursor: more ? idOf(last) : null } };
}
