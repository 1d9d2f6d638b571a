import { z } from "zod";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import {
  passwordCharactersMax,
  passwordCharactersMin,
} from "../../identity/people/sign-in/password-bounds.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { lazily } from "../../http/endpoint.ts";

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
export const entryPage = { usual: 50, most: 200 } as const;

/** Returns the `limit` of such a list. Throws `bad_request`. */
export function entryLimit(query: URLSearchParams): number {
  const { usual, most } = entryPage;
  const limit = Number(query.get("limit") ?? usual);
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
  throw new GatewayError("bad_request", `limit: must be a whole number from 1 to ${most}.`, {
    param: "limit",
  });
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
  new GatewayError(
    "bad_request",
    "cursor: names no entry of this list. Leave it out for the first page.",
    { param: "cursor" },
  );

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

/** The largest body, in bytes, of a route of the account plane. */
export const accountBodyBytesMax = 256 * 1024;

/**
 * Returns the most characters of a text and the message for longer ones. A schema's own message is
 * about another mistake.
 */
export const atMost = (characters: number): [number, string] => [
  characters,
  `must have at most ${characters} characters`,
];

/**
 * Accepts only text that both databases keep as it is: Postgres rejects a zero byte, and lone
 * surrogates come back changed.
 */
const kept = (text: z.ZodString) =>
  text
    .regex(/^[^\0]*$/, "must not hold a zero byte")
    .refine((value) => value.isWellFormed(), "must not hold half a character");

/** Returns the schema of a text of at most this many characters that both databases keep. */
export const plainText = (charactersMax: number, problem?: string) =>
  kept(z.string(problem).max(...atMost(charactersMax)));

/** The name of a record. Surrounding spaces are removed. */
export const nameField = kept(
  z
    .string("is required and must be a text")
    .trim()
    .min(1, "is required and must not be empty")
    .max(...atMost(200)),
);

/** A moment (ISO 8601); where it names no time zone it is UTC, and a date is its midnight. */
export const momentField = z.union(
  [z.iso.datetime({ offset: true }), z.iso.datetime({ local: true }), z.iso.date()],
  "must be an ISO 8601 time such as 2027-01-31T00:00:00Z",
);

const isLocalTime = /T[\d:.]+$/;

/** Converts a point in time to milliseconds since the Unix epoch; null where there is none. */
export const momentMs = (moment: string | null | undefined): number | null =>
  moment ? Date.parse(isLocalTime.test(moment) ? `${moment}Z` : moment) : null;

/**
 * Returns when a new key expires, in milliseconds; null where it does not. Throws `bad_request` for
 * a time in the past, since such a key would never work.
 */
export function expiryMs(moment: string | null | undefined, nowMs: number): number | null {
  const atMs = momentMs(moment);
  if (atMs === null || atMs > nowMs) return atMs;
  throw new GatewayError("bad_request", "expires_at: must be in the future.", {
    param: "expires_at",
  });
}

/**
 * Parses a boolean of a query string; false where it is absent. Throws `bad_request` where it is
 * neither `true` nor `false`.
 */
export function truthIn(query: URLSearchParams, param: string): boolean {
  const text = query.get(param) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new GatewayError("bad_request", `${param}: must be true or false.`, { param });
}

/** The header of answers that contain a secret. */
export const neverCached = { "cache-control": "no-store" } as const;

/** The declarations that routes of presets and of names share. */
export const forPresets = {
  base: "api",
  counting: "at-door",
  tag: "Presets",
  encodeError: encodeContractError,
} as const;
export const readsPresets = { managementScope: "read:presets", session: true } as const;
export const writesPresets = { managementScope: "write:presets", session: true } as const;

/** The declarations that every route for signed-in people shares. */
export const forSessions = {
  base: "api",
  access: { session: true },
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;

/** An address in the form in which it is stored: in lower case, without surrounding spaces. */
export const emailField = z
  .string("is required and must be a text")
  .trim()
  .toLowerCase()
  .max(...atMost(254))
  .pipe(z.email("must be an e-mail address"));

/** A new password, of which only the length is checked (NIST SP 800-63B, section 3.1.1.2). */
export const newPasswordField = z
  .string("is required and must be a text")
  .min(passwordCharactersMin, `must have at least ${passwordCharactersMin} characters`)
  .max(passwordCharactersMax, `must have at most ${passwordCharactersMax} characters`);

/** A password as it was typed. */
export const passwordField = z
  .string("is required and must be a text")
  .max(...atMost(passwordCharactersMax));

/** The fields of a new account with a password. */
export const newPersonFields = { name: nameField, email: emailField, password: newPasswordField };

/** Returns the person who calls a route for sessions alone. */
export const sessionOf = ({ caller }: RequestContext<unknown, SessionCaller>): SessionCaller =>
  caller;

/** Returns the workspace of a caller with a credential. */
export const workspaceOf = ({ caller }: RequestContext<unknown, KnownCaller>): Workspace =>
  caller.workspace;
