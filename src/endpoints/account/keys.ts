import { z } from "zod";
import { creatorIdOf, type AccountCaller } from "../../account/keys/caller.ts";
import type { LlmKey } from "../../account/keys/llm-key.ts";
import type { NewLlmKey } from "../../account/keys/llm-key-minter.ts";
import { coversScope } from "../../account/keys/scopes.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { checkBody } from "../../http/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, neverCached, truthIn } from "./account-fields.ts";
import { assertRoomForChild, childFields } from "./child-keys.ts";
import { inferenceEndpoints } from "./inference-endpoints.ts";
import { newKeyFieldsOf, newKeySchema, type NewKeyBody } from "./llm-key-fields.ts";
import { keyObject, keyObjects, llmKeyObjectSchema } from "./llm-key-object.ts";

/**
 * Keys that people make begin with the inference endpoints; those of programs without a list may call every one
 * (contract: "Scopes").
 */
const withEndpoints = ({ kind }: AccountCaller, body: NewKeyBody): NewKeyBody =>
  kind === "session" && body.allowed_endpoints === undefined
    ? { ...body, allowed_endpoints: [...inferenceEndpoints] }
    : body;

/** Orders of the list. */
const keySorts = ["created", "last_used", "spend", "name"] as const;

/**
 * What a new key is. One that a connected app creates is a child of its own: within the cap, the models and the time that a person
 * granted, counted together with it, and gone with it. Throws `bad_request`, and `insufficient_scope` where it could not be used.
 */
function fieldsOf(
  caller: AccountCaller,
  { body, deps }: { body: NewKeyBody; deps: Dependencies },
): NewLlmKey {
  const parts = { nowMs: deps.clock.nowMs(), endpointPaths: deps.endpointPaths };
  if (caller.kind !== "connection") {
    return {
      workspaceId: caller.workspace.id,
      creatorUserId: creatorIdOf(caller),
      ...newKeyFieldsOf(withEndpoints(caller, body), parts),
    };
  }
  if (!coversScope(caller.connection.scopes, "inference")) {
    throw new GatewayError(
      "insufficient_scope",
      "This app was not granted inference, so it creates no keys for it. Connect it again.",
      {
        metadata: { required_scope: "inference", granted_scopes: [...caller.connection.scopes] },
      },
    );
  }
  assertRoomForChild(deps, caller.key);
  return childFields(caller.key, { body, ...parts });
}

/** Creates an LLM key; its secret is shown in this answer and never again. */
export const createKey = defineEndpoint<Dependencies, NewKeyBody>({
  method: "POST",
  idempotent: true,
  path: "/keys",
  base: "api",
  access: { managementScope: "write:llm-keys", session: true },
  counting: "at-door",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create an LLM key.",
  description:
    "A key that a connected app creates stays within the app's own cap, models and end, is counted together with it, and " +
    "ends with it.",
  tag: "Account",
  body: newKeySchema,
  response: z.object({ key: z.string(), data: llmKeyObjectSchema }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const caller = context.caller as AccountCaller;
    const { workspace } = caller;
    const { secret, key } = await deps.llmKeyMinter.mint(
      fieldsOf(caller, { body: context.body, deps }),
    );
    context.changed = key.id;
    return context.json(
      { key: secret, data: await keyObject(deps, { workspace, key }) },
      { headers: neverCached },
    );
  },
});

const listQuery = z.object({
  include_disabled: z.enum(["true", "false"]).optional(),
  search: z.string().max(200).optional().describe("Part of the name or the label, in any case."),
  creator: z
    .string()
    .max(200)
    .optional()
    .describe("Id of the user or management key that made the keys."),
  parent: z
    .string()
    .max(200)
    .optional()
    .describe("Id of the key that made the keys; none leaves those out that another key made."),
  sort: z
    .enum(keySorts)
    .optional()
    .describe(
      "created unless it is given; the newest, last used or most spending first, names from a to z.",
    ),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, "must be a whole number from 1 to 999")
    .optional()
    .describe("Keys on a page; all unless it is given."),
  cursor: z
    .string()
    .max(200)
    .optional()
    .describe("next_cursor of the page before, with the same filters and order."),
});

type ListQuery = z.infer<typeof listQuery>;
type KeyObject = z.infer<typeof llmKeyObjectSchema>;

const later = (one: string | null, other: string | null): number =>
  (other ?? "").localeCompare(one ?? "", "en");

const orders: Record<(typeof keySorts)[number], (one: KeyObject, other: KeyObject) => number> = {
  created: () => 0,
  last_used: (one, other) => later(one.last_used_at, other.last_used_at),
  spend: (one, other) => other.real_usage_monthly - one.real_usage_monthly,
  name: (one, other) => one.name.localeCompare(other.name, "en"),
};

function isWanted(
  { name, label, creatorUserId, parentKeyId, connection }: LlmKey,
  query: ListQuery,
): boolean {
  // Access tokens of connected apps are managed with their connection.
  if (connection !== undefined) return false;
  const { search, creator, parent } = query;
  if (search !== undefined && !`${name} ${label}`.toLowerCase().includes(search.toLowerCase()))
    return false;
  if (creator !== undefined && creatorUserId !== creator) return false;
  return (
    parent === undefined || (parent === "none" ? parentKeyId === undefined : parentKeyId === parent)
  );
}

/** A page of the keys: those after the one that the cursor names. Throws `bad_request` where it names none. */
function pageOf(
  keys: KeyObject[],
  { limit, cursor }: ListQuery,
): { data: KeyObject[]; has_more: boolean; next_cursor: string | null } {
  const at = cursor === undefined ? -1 : keys.findIndex(({ id }) => id === cursor);
  if (cursor !== undefined && at < 0) {
    throw new GatewayError(
      "bad_request",
      "cursor: names no key of this list. Leave it out for the first page.",
      { param: "cursor" },
    );
  }
  const end = limit === undefined ? keys.length : at + 1 + Number(limit);
  const data = keys.slice(at + 1, end);
  const more = end < keys.length;
  return { data, has_more: more, next_cursor: more ? (data.at(-1)?.id ?? null) : null };
}

/** Lists the LLM keys of the workspace, newest first, without their secrets. */
export const listKeys = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/keys",
  base: "api",
  access: { managementScope: "read:llm-keys", session: true },
  counting: "at-door",
  summary: "List LLM keys.",
  description:
    "All of them, the newest first, unless the query says otherwise. " +
    "With limit, next_cursor sent as cursor gives the next page.",
  tag: "Account",
  query: listQuery,
  response: z.object({
    object: z.literal("list"),
    data: z.array(llmKeyObjectSchema),
    has_more: z.boolean().optional(),
    next_cursor: z.string().nullable().optional(),
  }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const { workspace } = context.caller as AccountCaller;
    const query = checkBody(listQuery, Object.fromEntries(context.query));
    const includeDisabled = truthIn(context.query, "include_disabled");
    const keys = (await deps.llmKeys.list(workspace.id, { includeDisabled })).filter((key) =>
      isWanted(key, query),
    );
    const sorted = (await keyObjects(deps, { workspace, keys })).sort(
      orders[query.sort ?? "created"],
    );
    const { data, ...place } = pageOf(sorted, query);
    return context.json({ object: "list", data, ...(query.limit === undefined ? {} : place) });
  },
});
