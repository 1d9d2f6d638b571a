import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import type { AnswerOf } from "../../http/endpoint.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import { encodeContractError, isOpenRouterSdk } from "../../http/error-envelope.ts";
import type { RequestHeaders } from "../../http/served-request.ts";
import { creatorIdOf, type AccountCaller } from "../../identity/keys/caller.ts";
import type { LlmKeyReference, NewLlmKey } from "../../identity/keys/llm-key-editor.ts";
import type { LlmKey, LlmKeyChanges } from "../../identity/keys/llm-key-store.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  momentField,
  momentMs,
  nameField,
  neverCached,
  truthIn,
} from "../account/account-fields.ts";
import {
  descending,
  pageOf,
  pageParameters,
  placeFields,
  timeRank,
  type ListOrder,
} from "../account/list-pages.ts";
import {
  assertGrantsInference,
  assertRoomForChild,
  assertTeamOfParent,
  assertWithin,
  childFields,
} from "./child-keys.ts";
import { inferenceEndpoints } from "./inference-endpoints.ts";
import { assertMayHold, assertMayMove, teamIdOf } from "./key-team.ts";
import { givingOperator, holderOf, rightsAfterChange, tellRights } from "./operator-rights.ts";
import {
  allowedEndpointsField,
  allowedToolsField,
  allowedEndpointsOf,
  allowedModelsField,
  allowedModelsOf,
  keyObject,
  keyObjects,
  limitField,
  limitNano,
  limitResetField,
  llmKeyObjectSchema,
  newKeyFieldsOf,
  newKeySchema,
  operatorField,
  rateLimitField,
  runLimitField,
  teamIdField,
  tokensPerMinuteField,
  type NewKeyBody,
  type KeyObjectServices,
} from "./llm-key-object.ts";

/**
 * Returns the body with its endpoints. Keys that people create start with the inference endpoints,
 * and with the MCP server if they have an operator's rights; those of programs without a list may
 * call every one (contract: "Scopes").
 */
const withEndpoints = ({ kind }: AccountCaller, body: NewKeyBody): NewKeyBody =>
  kind === "session" && body.allowed_endpoints === undefined
    ? {
        ...body,
        allowed_endpoints: [...inferenceEndpoints, ...(body.operator === true ? ["/mcp"] : [])],
      }
    : body;

/** The orders of the list. */
const keySorts = ["created", "last_used", "spend", "name"] as const;

/**
 * Returns the fields of a new key. One that a connected app creates is a child of its own key:
 * within the cap, the models and the time that a person granted, counted together with it, and
 * revoked with it. Throws `bad_request`, and `insufficient_scope` where it could not be used.
 */
function fieldsOf(
  caller: AccountCaller,
  {
    body,
    deps,
  }: { body: NewKeyBody; deps: Pick<Dependencies, "directory" | "endpointPaths" | "clock"> },
): NewLlmKey {
  const parts = { nowMs: deps.clock.nowMs(), endpointPaths: deps.endpointPaths };
  if (caller.kind !== "connection") {
    return {
      workspaceId: caller.workspace.id,
      creatorUserId: creatorIdOf(caller),
      ...holderOf(caller),
      ...(body.operator === true ? { operatorUserId: givingOperator(caller, deps) } : {}),
      ...newKeyFieldsOf(withEndpoints(caller, body), parts),
      ...(body.team_id !== undefined && { teamId: teamIdOf(body.team_id, caller, deps) }),
    };
  }
  assertGrantsInference(caller.connection);
  assertRoomForChild(deps, caller.key);
  assertTeamOfParent(body, caller.key);
  return childFields(caller.key, { body, ...parts });
}

/** Creates an LLM key. Its secret is shown only in this answer. */
export const createKey = defineEndpoint({
  method: "POST",
  idempotent: true,
  path: "/keys",
  base: "api",
  access: { managementScope: "write:llm-keys", session: true },
  counting: "at-door",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create an LLM key.",
  description:
    "A key that a connected app creates stays within the cap, the models and the expiry of the app, is counted together with it, " +
    "and ends with it.",
  tag: "Account",
  body: newKeySchema,
  response: () => z.object({ key: z.string(), data: llmKeyObjectSchema() }),
  encodeError: encodeContractError,
  async handle(
    context,
    deps: KeyObjectServices &
      Pick<Dependencies, "operatorWorkspaceId" | "llmKeyMinter" | "security">,
  ) {
    const caller = context.caller;
    const { workspace } = caller;
    const { secret, key } = await deps.llmKeyMinter.mint(
      fieldsOf(caller, { body: context.body, deps }),
    );
    context.changed = key.id;
    await tellRights(context, deps, { before: undefined, after: key });
    return context.json(
      { key: secret, data: await keyObject(deps, { workspace, key }) },
      { status: createdStatus(context.request.headers), headers: neverCached },
    );
  },
});

/**
 * Returns the status of a created key: the contract's 200, or the 201 without which OpenRouter's
 * SDKs take the answer for a failure and retry, which creates another key each time.
 */
const createdStatus = (headers: RequestHeaders): 200 | 201 =>
  isOpenRouterSdk(headers) ? 201 : 200;

const listQuery = z.object({
  include_disabled: z.enum(["true", "false"]).optional(),
  search: z.string().max(200).optional().describe("Part of the name or the label, ignoring case."),
  creator: z
    .string()
    .max(200)
    .optional()
    .describe("Id of the user or management key that created the keys."),
  parent: z.string().max(200).optional().describe("Id of the parent key; none omits child keys."),
  team: z
    .string()
    .max(100)
    .optional()
    .describe("Id of the team of the keys; none: keys of no team."),
  sort: z
    .enum(keySorts)
    .optional()
    .describe(
      "Default created: newest first. The others: last used first, highest spend first, or by name.",
    ),
  ...pageParameters,
});

type ListQuery = z.infer<typeof listQuery>;
type KeyObject = AnswerOf<typeof llmKeyObjectSchema>;

const orders: Record<(typeof keySorts)[number], ListOrder<KeyObject>> = {
  created: {
    rankOf: (key) => timeRank(Date.parse(key.created_at), key.id),
    compare: descending,
  },
  last_used: { rankOf: (key) => key.last_used_at ?? "", compare: descending },
  spend: { rankOf: (key) => key.real_usage_monthly, compare: descending },
  name: {
    rankOf: ({ name }) => name,
    compare: (one, other) => String(one).localeCompare(String(other), "en"),
  },
};

function isWanted(
  { name, label, creatorUserId, parentKeyId, connection, teamId }: LlmKey,
  query: ListQuery,
): boolean {
  // Access tokens of connected apps are managed with their connection.
  if (connection !== undefined) return false;
  const { search, creator, parent, team } = query;
  if (team !== undefined && (teamId ?? "none") !== team) return false;
  if (search !== undefined && !`${name} ${label}`.toLowerCase().includes(search.toLowerCase()))
    return false;
  if (creator !== undefined && creatorUserId !== creator) return false;
  return (
    parent === undefined || (parent === "none" ? parentKeyId === undefined : parentKeyId === parent)
  );
}

/** Lists the LLM keys of the workspace, newest first, without their secrets. */
export const listKeys = defineEndpoint({
  method: "GET",
  path: "/keys",
  base: "api",
  access: { managementScope: "read:llm-keys", session: true },
  counting: "at-door",
  summary: "List LLM keys.",
  description:
    "Returns all, newest first, unless the query says otherwise. With limit, returns next_cursor, to send as cursor for the next " +
    "page.",
  tag: "Account",
  query: listQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(llmKeyObjectSchema()),
      ...placeFields(),
    }),
  encodeError: encodeContractError,
  async handle(context, deps: KeyObjectServices & Pick<Dependencies, "llmKeys">) {
    const { workspace } = context.caller;
    const query = checkBody(listQuery, Object.fromEntries(context.query));
    const includeDisabled = truthIn(context.query, "include_disabled");
    const keys = (await deps.llmKeys.list(workspace.id, { includeDisabled })).filter((key) =>
      isWanted(key, query),
    );
    const order = orders[query.sort ?? "created"];
    const sorted = (await keyObjects(deps, { workspace, keys })).sort((one, other) =>
      order.compare(order.rankOf(one), order.rankOf(other)),
    );
    const { data, place } = pageOf(sorted, query, { idOf: ({ id }) => id, order });
    return context.json({ object: "list", data, ...place });
  },
});

const shared = {
  path: "/keys/:hash",
  base: "api",
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;
const reads = { managementScope: "read:llm-keys", session: true } as const;
const writes = { managementScope: "write:llm-keys", session: true } as const;

const changeable = {
  name: nameField.optional(),
  disabled: z.boolean().optional(),
  include_byok_in_limit: z.boolean().optional(),
  limit: limitField.nullish(),
  limit_reset: limitResetField.nullish(),
  rate_limit: rateLimitField.nullish(),
  expires_at: momentField.nullish(),
  allowed_models: allowedModelsField.nullish(),
  allowed_endpoints: allowedEndpointsField.nullish(),
  allowed_tools: allowedToolsField.nullish(),
  tpm: tokensPerMinuteField.nullish(),
  run_limit: runLimitField,
  operator: operatorField.nullish(),
  team_id: teamIdField,
};

const changeKeySchema = z.strictObject(changeable, {
  error: ({ code }) =>
    code === "unrecognized_keys"
      ? `cannot be changed; PATCH takes ${Object.keys(changeable).join(", ")}`
      : undefined,
});

type KeyChangesBody = z.infer<z.ZodObject<typeof changeable>>;

/** Returns the fields that were sent, including null ones; absent fields are omitted. */
const changesOf = (body: KeyChangesBody, paths: EndpointPaths): LlmKeyChanges => ({
  ...(body.name === undefined ? {} : { name: body.name }),
  ...(body.disabled === undefined ? {} : { disabled: body.disabled }),
  ...(body.include_byok_in_limit === undefined
    ? {}
    : { includeByokInLimit: body.include_byok_in_limit }),
  ...(body.limit === undefined ? {} : { limitNanoUsd: limitNano(body.limit) }),
  ...(body.limit_reset === undefined ? {} : { limitReset: body.limit_reset }),
  ...(body.rate_limit === undefined ? {} : { rateLimitPerMinute: body.rate_limit }),
  ...(body.expires_at === undefined ? {} : { expiresAtMs: momentMs(body.expires_at) }),
  ...(body.allowed_models === undefined
    ? {}
    : { allowedModels: allowedModelsOf(body.allowed_models) }),
  ...(body.allowed_endpoints === undefined
    ? {}
    : { allowedEndpoints: allowedEndpointsOf(body.allowed_endpoints, paths) }),
  ...(body.allowed_tools === undefined ? {} : { allowedTools: body.allowed_tools }),
  ...(body.tpm === undefined ? {} : { tokensPerMinute: body.tpm }),
  ...(body.run_limit === undefined ? {} : { runLimitNano: limitNano(body.run_limit) }),
  ...(body.team_id === undefined ? {} : { teamId: body.team_id }),
});

const callerOf = (context: RequestContext<unknown, AccountCaller>): AccountCaller => context.caller;

const referenceOf = (context: RequestContext<unknown, AccountCaller>): LlmKeyReference => ({
  workspaceId: callerOf(context).workspace.id,
  hash: context.param("hash"),
});

/**
 * Returns whether changes are ones that an app may make to a key that it did not create: rename it,
 * or disable it.
 */
const narrows = ({ name: _, disabled, ...others }: KeyChangesBody): boolean =>
  disabled !== false && Object.keys(others).length === 0;

/**
 * Returns the key to change. A connected app's access token is changed only with its connection. A
 * connected app may change only keys that it created: with another key's secret, or without its own
 * cap, it would exceed what a person granted. Throws `not_found` and `forbidden`.
 */
function changeableKey(
  context: RequestContext<unknown, AccountCaller>,
  { directory, endpointPaths }: Pick<Dependencies, "directory" | "endpointPaths">,
  body?: KeyChangesBody,
): LlmKeyReference {
  const [reference, caller] = [referenceOf(context), callerOf(context)];
  const key = directory.llmKeyByHash(reference.hash);
  // The editor refuses a key that does not exist, or no longer has this hash.
  if (key === undefined || key.workspaceId !== reference.workspaceId) return reference;
  if (key.connection !== undefined) {
    throw new GatewayError(
      "not_found",
      "This is the access token of a connected app. DELETE /connections/{id} ends it.",
    );
  }
  if (caller.kind !== "connection") return reference;
  if (key.parentKeyId === caller.key.id) {
    if (body !== undefined) assertWithin(caller.key, changesOf(body, endpointPaths), endpointPaths);
    return reference;
  }
  if (body !== undefined && narrows(body)) return reference;
  throw new GatewayError(
    "forbidden",
    "Connected apps change and rotate the keys that they created; others they may disable or delete.",
  );
}

export const getKey = defineEndpoint({
  ...shared,
  method: "GET",
  access: reads,
  summary: "Show an LLM key.",
  description: "Returns the record, and a copy of it as `data` for OpenRouter's clients.",
  response: () => llmKeyObjectSchema().extend({ data: llmKeyObjectSchema() }),
  async handle(context, deps: KeyObjectServices & Pick<Dependencies, "llmKeyEditor">) {
    const key = deps.llmKeyEditor.find(referenceOf(context));
    const data = await keyObject(deps, { workspace: callerOf(context).workspace, key });
    return context.json({ ...data, data });
  },
});

/** Changes some fields of an LLM key, in force for the very next request. */
export const changeKey = defineEndpoint({
  ...shared,
  method: "PATCH",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change an LLM key.",
  description:
    "Omitted fields are unchanged; null removes a limit, an expiry, a list or a ceiling. A key with an operator's rights loses them " +
    "unless its operator makes the change, within 15 minutes after signing in.",
  body: changeKeySchema,
  response: () => z.object({ data: llmKeyObjectSchema() }),
  async handle(
    context,
    deps: KeyObjectServices &
      Pick<Dependencies, "operatorWorkspaceId" | "llmKeyEditor" | "security">,
  ) {
    const { llmKeyEditor } = deps;
    const changes = changesOf(context.body, deps.endpointPaths);
    const reference = changeableKey(context, deps, context.body);
    const before = llmKeyEditor.find(reference);
    if (context.body.team_id !== undefined)
      assertMayMove(before, { teamId: context.body.team_id, caller: callerOf(context), deps });
    const { operator: wanted } = context.body;
    const key =
      Object.keys(changes).length === 0 && typeof wanted !== "boolean"
        ? before
        : await llmKeyEditor.change(
            reference,
            changes,
            rightsAfterChange(callerOf(context), { key: before, wanted, deps }),
          );
    context.changed = key.id;
    await tellRights(context, deps, { before, after: key });
    return context.json({
      data: await keyObject(deps, { workspace: callerOf(context).workspace, key }),
    });
  },
});

/** Deletes an LLM key; its charges can still be explained. */
export const deleteKey = defineEndpoint({
  ...shared,
  method: "DELETE",
  access: writes,
  idempotent: true,
  summary: "Delete an LLM key.",
  description: "Takes the hash or the id of the key.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(
    context,
    { llmKeyEditor, directory }: Pick<Dependencies, "llmKeyEditor" | "directory">,
  ) {
    const { workspaceId, hash } = referenceOf(context);
    const named = directory.llmKeyById(hash);
    // The key of a connected app ends with its connection.
    const id = await llmKeyEditor.remove({
      workspaceId,
      hash: named?.connection === undefined ? (named?.hash ?? hash) : hash,
    });
    context.changed = id;
    return context.json({ deleted: true, id });
  },
});

const graceSecondsMax = 7 * 24 * 3_600;

const rotationSchema = z.strictObject({
  grace_seconds: z
    .int("must be whole seconds")
    .min(0, "must not be below 0")
    .max(graceSecondsMax, `must be at most ${graceSecondsMax}`)
    .optional()
    .describe(
      "Seconds for which the old secret remains valid. Omitted: it is refused immediately.",
    ),
});

/** Replaces the secret of an LLM key; everything else stays. */
export const rotateKey = defineEndpoint({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/keys/:hash/rotate",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Rotate the secret of an LLM key.",
  description:
    "The old secret is refused immediately, or after grace_seconds, at most a week. Another rotation ends the previous grace " +
    "period. Spend, windows and all other fields remain, except an operator's rights, which are lost; the hash in the key's path " +
    "changes. If two rotations happen at the same time, one answers 409.",
  body: rotationSchema,
  bodyOptional: true,
  response: () =>
    z.object({
      key: z.string(),
      data: llmKeyObjectSchema(),
      previous_valid_until: z
        .string()
        .optional()
        .describe("When the old secret expires, if there is a grace period."),
    }),
  async handle(
    context,
    deps: KeyObjectServices &
      Pick<Dependencies, "operatorWorkspaceId" | "llmKeyEditor" | "security" | "teamStore">,
  ) {
    const { grace_seconds: graceSeconds = 0 } = context.body;
    const grace =
      graceSeconds === 0 ? {} : { previousUntilMs: deps.clock.nowMs() + graceSeconds * 1_000 };
    const reference = changeableKey(context, deps);
    const before = deps.directory.llmKeyByHash(reference.hash);
    await assertMayHold(callerOf(context), before, deps);
    const { secret, key } = await deps.llmKeyEditor.rotate(reference, {
      ...grace,
      ...holderOf(callerOf(context)),
    });
    context.changed = key.id;
    await tellRights(context, deps, { before, after: key });
    const data = await keyObject(deps, { workspace: callerOf(context).workspace, key });
    const until =
      key.previous === undefined
        ? {}
        : { previous_valid_until: new Date(key.previous.untilMs).toISOString() };
    return context.json({ key: secret, data, ...until }, { headers: neverCached });
  },
});
