import { z } from "zod";
import type { AccountCaller } from "../../account/keys/caller.ts";
import type { LlmKeyChanges } from "../../account/keys/llm-key.ts";
import type { LlmKeyReference } from "../../account/keys/llm-key-editor.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  momentField,
  momentMs,
  nameField,
  neverCached,
} from "./account-fields.ts";
import {
  allowedEndpointsField,
  allowedEndpointsOf,
  allowedModelsField,
  allowedModelsOf,
  limitField,
  limitNano,
  limitResetField,
  rateLimitField,
  tokensPerMinuteField,
} from "./llm-key-fields.ts";
import { assertWithin } from "./child-keys.ts";
import { keyObject, llmKeyObjectSchema } from "./llm-key-object.ts";

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
  tpm: tokensPerMinuteField.nullish(),
};

const changeKeySchema = z.strictObject(changeable, {
  error: ({ code }) =>
    code === "unrecognized_keys"
      ? `cannot be changed; PATCH takes ${Object.keys(changeable).join(", ")}`
      : undefined,
});

type KeyChangesBody = z.infer<z.ZodObject<typeof changeable>>;

/** Fields that were sent, null among them; what was not sent is not named. */
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
  ...(body.tpm === undefined ? {} : { tokensPerMinute: body.tpm }),
});

const callerOf = (context: RequestContext<unknown>): AccountCaller =>
  context.caller as AccountCaller;

const referenceOf = (context: RequestContext<unknown>): LlmKeyReference => ({
  workspaceId: callerOf(context).workspace.id,
  hash: context.param("hash"),
});

/** What an app may do to a key that it did not create: make it known by another name, or stop it. */
const narrows = ({ name: _, disabled, ...others }: KeyChangesBody): boolean =>
  disabled !== false && Object.keys(others).length === 0;

/**
 * The key to change. The access token of a connected app is changed with its connection alone, and a connected app changes keys that it
 * created: with another's secret, or without its own cap, it would go beyond what a person granted. Throws `not_found` and `forbidden`.
 */
function changeableKey(
  context: RequestContext<unknown>,
  { directory, endpointPaths }: Dependencies,
  body?: KeyChangesBody,
): LlmKeyReference {
  const [reference, caller] = [referenceOf(context), callerOf(context)];
  const key = directory.llmKeyByHash(reference.hash);
  // What is not there, or no longer under this hash, is the editor's to refuse.
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

/** Shows one LLM key. */
export const getKey = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  access: reads,
  summary: "Show one LLM key.",
  description: "The record, and the same again as `data`, where clients of OpenRouter look for it.",
  response: llmKeyObjectSchema.extend({ data: llmKeyObjectSchema }),
  async handle(context, deps) {
    const key = deps.llmKeyEditor.find(referenceOf(context));
    const data = await keyObject(deps, { workspace: callerOf(context).workspace, key });
    return context.json({ ...data, data });
  },
});

/** Changes some fields of an LLM key; the very next request meets them. */
export const changeKey = defineEndpoint<Dependencies, KeyChangesBody>({
  ...shared,
  method: "PATCH",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change an LLM key.",
  description:
    "Fields that are left out stay as they are; null takes a limit, an expiry, a list or a ceiling away.",
  body: changeKeySchema,
  response: z.object({ data: llmKeyObjectSchema }),
  async handle(context, deps) {
    const { llmKeyEditor } = deps;
    const changes = changesOf(context.body, deps.endpointPaths);
    const reference = changeableKey(context, deps, context.body);
    const key =
      Object.keys(changes).length === 0
        ? llmKeyEditor.find(reference)
        : await llmKeyEditor.change(reference, changes);
    context.changed = key.id;
    return context.json({
      data: await keyObject(deps, { workspace: callerOf(context).workspace, key }),
    });
  },
});

/** Deletes an LLM key; its charges stay explained. */
export const deleteKey = defineEndpoint<Dependencies>({
  ...shared,
  method: "DELETE",
  access: writes,
  idempotent: true,
  summary: "Delete an LLM key.",
  description: "By its hash or by its id.",
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { llmKeyEditor, directory }) {
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
    .describe("The old secret is accepted for so long; left out, it is refused at once."),
});

/** Gives an LLM key another secret; everything else goes on. */
export const rotateKey = defineEndpoint<Dependencies, z.infer<typeof rotationSchema>>({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/keys/:hash/rotate",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Rotate the secret of an LLM key.",
  description:
    "The old secret is refused at once, or after grace_seconds, a week at most; another rotation ends the one before. Spend, " +
    "windows and every other field stay; the hash in the key's path changes. Of two rotations at the same time one answers 409.",
  body: rotationSchema,
  bodyOptional: true,
  response: z.object({
    key: z.string(),
    data: llmKeyObjectSchema,
    previous_valid_until: z
      .string()
      .optional()
      .describe("Where there is a grace: when the old secret ends."),
  }),
  async handle(context, deps) {
    const { grace_seconds: graceSeconds = 0 } = context.body;
    const grace =
      graceSeconds === 0 ? {} : { previousUntilMs: deps.clock.nowMs() + graceSeconds * 1_000 };
    const { secret, key } = await deps.llmKeyEditor.rotate(changeableKey(context, deps), grace);
    context.changed = key.id;
    const data = await keyObject(deps, { workspace: callerOf(context).workspace, key });
    const until =
      key.previous === undefined
        ? {}
        : { previous_valid_until: new Date(key.previous.untilMs).toISOString() };
    return context.json({ key: secret, data, ...until }, { headers: neverCached });
  },
});
