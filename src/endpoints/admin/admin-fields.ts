import { z } from "zod";
import { requireOperator } from "../../identity/keys/caller.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import type { DayRange } from "../../insights/usage/service-usage-store.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { plainText, wholeNumberField } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/**
 * The declarations that every route of operators shares. They admit people who are operators, and
 * management keys of the first workspace that hold the scope; LLM keys, keys of other workspaces
 * and other people are refused before a handler runs.
 */
export const forOperators = {
  base: "api",
  access: { managementScope: "write:management-keys", session: true, operator: true },
  counting: "at-door",
  tag: "Admin",
  encodeError: encodeContractError,
} as const;

/** Returns the id of the operator that calls. The guard refuses other callers. */
export const operatorOf = (
  { caller }: RequestContext<unknown>,
  { operatorWorkspaceId }: Pick<Dependencies, "operatorWorkspaceId">,
): string => requireOperator(caller, operatorWorkspaceId);

const pageMax = 200;
const pageDefault = 50;
const offsetMax = 1_000_000;

/** The parameters of a page of a list. */
export const pageFields = {
  limit: wholeNumberField([1, pageMax]).default(pageDefault),
  offset: wholeNumberField([0, offsetMax]).default(0),
};

/** A boolean of a query string. */
export const truthField = z
  .enum(["true", "false"], "must be true or false")
  .transform((text) => text === "true")
  .optional();

/** A search text. */
export const searchField = plainText(200).trim().min(1).optional();

/** The answer of a paged list. */
export const pageSchema = <Item extends z.ZodType>(item: Item) =>
  z.object({
    object: z.literal("list"),
    data: z.array(item),
    total: z.int(),
    has_more: z.boolean(),
  });

/** Returns a page of a list. */
export const pageObject = <Item>(
  data: readonly Item[],
  { total, offset }: { total: number; offset: number },
) => ({ object: "list", data, total, has_more: offset + data.length < total });

const daysMax = 366;

/** The parameter for the number of days (UTC) that figures cover, including today. */
export const daysQuery = (standard: number) =>
  z.object({ days: wholeNumberField([1, daysMax]).default(standard) });

/** Returns the range of the last days (UTC), including today. */
export function lastDays(days: number, nowMs: number): DayRange {
  const toDay = Math.floor(nowMs / dayMs) + 1;
  return { fromDay: toDay - days, toDay };
}

/** Formats a day, such as `2026-11-22`. */
export const dayText = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);
