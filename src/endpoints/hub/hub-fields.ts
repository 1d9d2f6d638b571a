import { z } from "zod";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { hubCallerOf, visibilities, type HubCaller, type Page } from "../../mcp/hub/entry.ts";
import { bodyCharactersMax, unprintable } from "../../mcp/hub/hub-library.ts";
import { plainText, wholeNumberField } from "../account/account-fields.ts";

/** The declarations that every route of the hub shares. */
export const forHub = {
  base: "api",
  counting: "at-door",
  tag: "Hub",
  encodeError: encodeContractError,
} as const;
export const readsHub = { managementScope: "read:hub", session: true } as const;
export const writesHub = { managementScope: "write:hub", session: true } as const;

/**
 * The largest request body, in bytes: the longest text, each character of which may take six in
 * JSON.
 */
export const hubBodyBytesMax = 1024 * 1024;

/** Returns the person or key that a request reads and writes for. */
export const hubCaller = ({ caller }: RequestContext<unknown, AccountCaller>): HubCaller =>
  hubCallerOf(caller);

const isLine = (text: string): boolean => text.search(unprintable) < 0;

/** Returns the schema of one line of text of at most this many characters. */
export const lineField = (charactersMax: number) =>
  plainText(charactersMax, "must be a text")
    .trim()
    .min(1, "must not be empty")
    .refine(isLine, "must not hold control characters");

/** The text of a prompt or a document, kept as it is. */
export const bodyField = plainText(bodyCharactersMax, "is required and must be a text").refine(
  (text) => text.trim() !== "",
  "is required and must not be empty",
);

/** One line of description. */
export const descriptionField = lineField(2_000);

/** The name of a record in addresses. */
export const slugField = z
  .string("must be a text")
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, "must have lower-case letters, digits and single dashes")
  .max(64, "must have at most 64 characters");

/** The category of a prompt. */
export const categoryField = lineField(50);

/** The field that says who can see a record. */
export const visibilityField = z.enum(visibilities, `must be one of ${visibilities.join(", ")}`);

const tagField = plainText(50, "must be a text")
  .trim()
  .toLowerCase()
  .regex(
    /^[\p{L}\p{N}][\p{L}\p{N}._+-]*$/u,
    "must begin with a letter or a digit, and have letters, digits, dots, dashes, + and _ only",
  );

const withoutRepeats = (texts: string[]): string[] => [...new Set(texts)];

/** Tags, in lower case and each once. */
export const tagsField = z
  .array(tagField, "must be a list of texts")
  .max(20, "must have at most 20 tags")
  .transform(withoutRepeats);

/** A list of names, such as platforms. */
export const namesField = z
  .array(lineField(100), "must be a list of texts")
  .max(20, "must have at most 20 entries")
  .transform(withoutRepeats);

/** The number of records on a page. */
export const limitField = (standard: number) => wholeNumberField([1, 100]).default(standard);

/** The number of records before a page that no cursor begins. */
export const offsetField = wholeNumberField([0, 9_999_999])
  .optional()
  .describe("Number of entries to leave out, where no cursor is sent.");

/** The parameters of a page of a list. */
export const pageFields = {
  search: plainText(200)
    .trim()
    .min(1, "must not be empty")
    .optional()
    .describe("Search words; each must match the beginning of a word in the record."),
  limit: limitField(50),
  cursor: z.string().max(100).optional().describe("The `next_cursor` of the previous page."),
  offset: offsetField,
};

/** Returns a list in the form that clients read. */
export const listObject = <Item, Shown>(
  { data, nextCursor }: Page<Item>,
  show: (item: Item) => Shown,
) => ({
  object: "list" as const,
  data: data.map(show),
  has_more: nextCursor !== null,
  next_cursor: nextCursor,
});
