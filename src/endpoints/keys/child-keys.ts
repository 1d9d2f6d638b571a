import { z } from "zod";
import type { NewLlmKey } from "../../identity/keys/llm-key-editor.ts";
import type { KeyConnection, LlmKey, LlmKeyChanges } from "../../identity/keys/llm-key-store.ts";
import { isRunId } from "../../identity/keys/run.ts";
import { coversScope } from "../../identity/keys/scopes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Answer } from "../../http/reply.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { AccountCaller, KnownCaller } from "../../identity/keys/caller.ts";
import type { Dependencies } from "../dependencies.ts";
import { assertMayHold } from "./key-team.ts";
import { accountBodyBytesMax, neverCached, workspaceOf } from "../account/account-fields.ts";
import { assertNoRights } from "./operator-rights.ts";
import {
  keyObject,
  llmKeyObjectSchema,
  newKeyFieldsOf,
  newKeySchema,
  shownEndpoints,
  type NewKeyBody,
  type KeyObjectServices,
} from "./llm-key-object.ts";

const shared = {
  base: "api",
  access: { llmKey: true, keyHeldDirectly: true },
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;

/**
 * The most keys that one key may have created at a time; more of them are a mistake or an attack.
 */
const childrenMax = 1_000;

const beyond = (param: string, bound: string): GatewayError =>
  new GatewayError(
    "bad_request",
    `${param} must stay within that of the key that makes this one: ${bound}.`,
    { param },
  );

/**
 * Returns the lower of two bounds. A requested bound above the parent's is refused by name. Null
 * means no bound.
 */
function bounded<Bound extends number | bigint>(
  param: string,
  {
    wanted,
    parents,
    show = String,
  }: { wanted: Bound | null; parents: Bound | null; show?: (bound: Bound) => string },
): Bound | null {
  if (wanted !== null && parents !== null && wanted > parents) throw beyond(param, show(parents));
  return wanted ?? parents;
}

function listed(
  param: string,
  wanted: readonly string[] | null,
  parents: readonly string[] | null,
): readonly string[] | null {
  if (wanted === null || parents === null) return wanted ?? parents;
  const foreign = wanted.findIndex((entry) => !parents.includes(entry));
  if (foreign >= 0) throw beyond(`${param}[${foreign}]`, parents.join(", "));
  return wanted;
}

/**
 * Returns endpoints within the parent's list. An empty list allows every endpoint, so it is not
 * within a parent's list.
 */
function endpointsWithin(
  wanted: readonly string[] | null,
  parents: readonly string[] | null,
): readonly string[] | null {
  if (parents === null || parents.length === 0) return wanted;
  if (wanted?.length === 0) throw beyond("allowed_endpoints", parents.join(", "));
  return listed("allowed_endpoints", wanted, parents);
}

/**
 * Returns tools within the parent's list, of which a server's entry includes its tools. Throws
 * `bad_request`.
 */
function toolsWithin(
  wanted: readonly string[] | null,
  parents: readonly string[] | null,
): readonly string[] | null {
  const servers = new Set(parents);
  const foreign = (wanted ?? []).filter((tool) => !servers.has(tool.split("/", 1)[0] ?? ""));
  listed("allowed_tools", wanted === null ? null : foreign, parents);
  return wanted ?? parents;
}

/** Refuses the scope of providers' own routes for keys that a key creates. Throws `forbidden`. */
function assertNoPassthrough(wanted: NewKeyBody["scopes"]): void {
  if (!wanted?.includes("passthrough")) return;
  throw new GatewayError(
    "forbidden",
    "scopes: keys that a key or an app creates cannot have the scope passthrough.",
    { param: "scopes" },
  );
}

/**
 * Returns what a key passes on to one that it creates: what was requested, within its own bounds, and
 * never an operator's rights or providers' own routes. Throws `bad_request`, and `forbidden` where
 * they are requested.
 */
export function childFields(
  parent: LlmKey,
  { body, nowMs, endpointPaths }: { body: NewKeyBody; nowMs: number; endpointPaths: EndpointPaths },
): NewLlmKey {
  assertNoRights(body.operator);
  assertNoPassthrough(body.scopes);
  const wanted = newKeyFieldsOf(body, { nowMs, endpointPaths });
  return {
    ...wanted,
    workspaceId: parent.workspaceId,
    creatorUserId: parent.creatorUserId,
    parentKeyId: parent.id,
    expiresAtMs: bounded("expires_at", {
      wanted: wanted.expiresAtMs,
      parents: parent.expiresAtMs,
      show: (atMs) => new Date(atMs).toISOString(),
    }),
    limitNanoUsd: bounded("limit", {
      wanted: wanted.limitNanoUsd,
      parents: parent.limitNanoUsd,
      show: (nano) => `${usdFromNano(nano)} USD`,
    }),
    limitReset:
      typeof body.limit === "number" || body.limit_reset ? wanted.limitReset : parent.limitReset,
    includeByokInLimit: body.include_byok_in_limit ?? parent.includeByokInLimit,
    rateLimitPerMinute: bounded("rate_limit", {
      wanted: wanted.rateLimitPerMinute,
      parents: parent.rateLimitPerMinute,
    }),
    tokensPerMinute: bounded("tpm", {
      wanted: wanted.tokensPerMinute,
      parents: parent.tokensPerMinute,
    }),
    runLimitNano: bounded("run_limit", {
      wanted: wanted.runLimitNano ?? null,
      parents: parent.runLimitNano ?? null,
      show: (nano) => `${usdFromNano(nano)} USD`,
    }),
    allowedModels: listed("allowed_models", wanted.allowedModels, parent.allowedModels),
    allowedTools: toolsWithin(wanted.allowedTools, parent.allowedTools ?? null),
    allowedEndpoints: endpointsWithin(
      wanted.allowedEndpoints,
      shownEndpoints(parent.allowedEndpoints, endpointPaths),
    ),
  };
}

/** Checks changes of a child key against the present bounds of its parent. Throws `bad_request`. */
export function assertWithin(
  parent: LlmKey,
  changes: LlmKeyChanges,
  endpointPaths: EndpointPaths,
): void {
  const { limitNanoUsd, expiresAtMs, allowedModels, allowedEndpoints, runLimitNano } = changes;
  const { allowedTools } = changes;
  const unbounded = (param: string): GatewayError =>
    beyond(param, "it has one, so this cannot be without");
  const refuse = <Value>(
    param: string,
    wanted: Value | null | undefined,
    parents: Value | null,
  ): void => {
    if (wanted === null && parents !== null) throw unbounded(param);
  };
  refuse("limit", limitNanoUsd, parent.limitNanoUsd);
  refuse("run_limit", runLimitNano, parent.runLimitNano ?? null);
  bounded("run_limit", {
    wanted: runLimitNano ?? null,
    parents: parent.runLimitNano ?? null,
    show: (nano) => `${usdFromNano(nano)} USD`,
  });
  refuse("expires_at", expiresAtMs, parent.expiresAtMs);
  refuse("allowed_models", allowedModels, parent.allowedModels);
  refuse("allowed_tools", allowedTools, parent.allowedTools ?? null);
  toolsWithin(allowedTools ?? null, parent.allowedTools ?? null);
  bounded("limit", {
    wanted: limitNanoUsd ?? null,
    parents: parent.limitNanoUsd,
    show: (nano) => `${usdFromNano(nano)} USD`,
  });
  bounded("expires_at", { wanted: expiresAtMs ?? null, parents: parent.expiresAtMs });
  listed("allowed_models", allowedModels ?? null, parent.allowedModels);
  endpointsWithin(allowedEndpoints ?? null, shownEndpoints(parent.allowedEndpoints, endpointPaths));
}

/** Throws `bad_request` where a child key is to belong to another team than its parent. */
export function assertTeamOfParent({ team_id: teamId }: NewKeyBody, parent: LlmKey): void {
  if (teamId === undefined || teamId === (parent.teamId ?? null)) return;
  throw badField("team_id", "a child key belongs to the team of its parent. Leave it out.");
}

/** Throws `conflict` where a key has created as many as it may. */
export function assertRoomForChild(
  { directory }: Pick<Dependencies, "directory">,
  parent: LlmKey,
): void {
  if (directory.childrenOf(parent.id).length < childrenMax) return;
  const message = `This key has ${childrenMax} keys that it made already. Delete some with DELETE /key/children/{hash}.`;
  throw new GatewayError("conflict", message);
}

/** Throws `forbidden` for the key of a run, and for one that another key made: they make none. */
export function assertMakesKeys({ id, parentKeyId }: LlmKey): void {
  if (parentKeyId === undefined && !isRunId(id)) return;
  throw new GatewayError(
    "forbidden",
    "This key was made by another LLM key and makes none itself. Ask with that one.",
  );
}

/** Throws `insufficient_scope` for an app without inference, which obtains no key for it. */
export function assertGrantsInference({ scopes }: KeyConnection): void {
  if (coversScope(scopes, "inference")) return;
  throw new GatewayError(
    "insufficient_scope",
    "This app was not granted inference, so it creates no keys for it. Connect it again.",
    { metadata: { required_scope: "inference", granted_scopes: [...scopes] } },
  );
}

/** Creates a key within the limits of the calling one. Its secret is shown only in this answer. */
export const createChildKey = defineEndpoint({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/key/children",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create a child key of the calling LLM key.",
  description:
    "The spend and requests of the new key also count towards the calling key, and the new key ends with it. Omitted fields are " +
    "inherited from the calling key; no field may exceed it. Child keys cannot create keys.",
  body: newKeySchema,
  response: () => z.object({ key: z.string(), data: llmKeyObjectSchema() }),
  handle: (context, deps: KeyObjectServices & Pick<Dependencies, "llmKeyMinter">) =>
    answerChild(context, deps, context.caller.key),
});

/**
 * Creates a child key and shows its secret. Throws `forbidden` for keys that are children
 * themselves, and `conflict` for too many.
 */
async function answerChild(
  context: RequestContext<NewKeyBody, KnownCaller>,
  deps: KeyObjectServices & Pick<Dependencies, "llmKeyMinter">,
  parent: LlmKey,
): Promise<Answer> {
  assertMakesKeys(parent);
  assertRoomForChild(deps, parent);
  assertTeamOfParent(context.body, parent);
  const { secret, key } = await deps.llmKeyMinter.mint(
    childFields(parent, {
      body: context.body,
      nowMs: deps.clock.nowMs(),
      endpointPaths: deps.endpointPaths,
    }),
  );
  context.changed = key.id;
  const data = await keyObject(deps, { workspace: workspaceOf(context), key });
  return context.json({ key: secret, data }, { headers: neverCached });
}

/** Throws `forbidden` for a connected app, which creates keys only within its own cap. */
function assertNoApp({ kind }: AccountCaller): void {
  if (kind !== "connection") return;
  throw new GatewayError(
    "forbidden",
    "Connected apps create keys within their own limits: with POST /keys.",
  );
}

/** Returns the key whose hash is named. Throws `forbidden` and `not_found`. */
function parentOf(
  context: RequestContext<unknown, AccountCaller>,
  { llmKeyEditor }: Pick<Dependencies, "llmKeyEditor">,
): LlmKey {
  assertNoApp(context.caller);
  const parent = llmKeyEditor.find({
    workspaceId: workspaceOf(context).id,
    hash: context.param("hash"),
  });
  if (parent.connection === undefined) return parent;
  throw new GatewayError(
    "not_found",
    "This is the access token of a connected app. DELETE /connections/{id} ends it.",
  );
}

/**
 * Creates a key within the limits of another one of the workspace, without the secret of that one.
 */
export const createChildOfKey = defineEndpoint({
  ...shared,
  access: { managementScope: "write:llm-keys", session: true },
  method: "POST",
  idempotent: true,
  path: "/keys/:hash/children",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create a child key of an LLM key.",
  description:
    "Does for the key of the path what POST /key/children does for the calling key. GET /keys?parent={id} lists child keys, and " +
    "DELETE /keys/{hash} deletes one.",
  body: newKeySchema,
  response: () => z.object({ key: z.string(), data: llmKeyObjectSchema() }),
  async handle(
    context,
    deps: KeyObjectServices & Pick<Dependencies, "llmKeyMinter" | "llmKeyEditor" | "teamStore">,
  ) {
    const parent = parentOf(context, deps);
    await assertMayHold(context.caller, parent, deps);
    return answerChild(context, deps, parent);
  },
});

export const deleteChildKey = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/key/children/:hash",
  summary: "Delete a child key of the calling LLM key.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { llmKeyEditor }: Pick<Dependencies, "llmKeyEditor">) {
    const { workspace, key: parent } = context.caller;
    const reference = { workspaceId: workspace.id, hash: context.param("hash") };
    if (llmKeyEditor.find(reference).parentKeyId !== parent.id) {
      throw new GatewayError("not_found", "This key has made no key with this hash.");
    }
    return context.json({ deleted: true, id: await llmKeyEditor.remove(reference) });
  },
});
