import { z } from "zod";
import { creatorIdOf, type AccountCaller } from "../../account/keys/caller.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, neverCached, truthIn } from "./account-fields.ts";
import { inferenceEndpoints } from "./inference-endpoints.ts";
import { newKeyFieldsOf, newKeySchema, type NewKeyBody } from "./llm-key-fields.ts";
import { keyObject, keyObjects, llmKeyObjectSchema } from "./llm-key-object.ts";

/**
 * Keys that people make begin with the inference endpoints; those of programs without a list may call every one
 * (contract: "Scopes").
 */
const withEndpoints = ({ kind }: AccountCaller, body: NewKeyBody): NewKeyBody =>
  (kind === "session" && body.allowed_endpoints === undefined ? { ...body, allowed_endpoints: [...inferenceEndpoints] } : body);

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
  tag: "Account",
  body: newKeySchema,
  response: z.object({ key: z.string(), data: llmKeyObjectSchema }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const caller = context.caller as AccountCaller;
    const { workspace } = caller;
    const { secret, key } = await deps.llmKeyMinter.mint({
      workspaceId: workspace.id, creatorUserId: creatorIdOf(caller),
      ...newKeyFieldsOf(withEndpoints(caller, context.body), { nowMs: deps.clock.nowMs(), endpointPaths: deps.endpointPaths }),
    });
    context.changed = key.id;
    return context.json({ key: secret, data: await keyObject(deps, { workspace, key }) }, { headers: neverCached });
  },
});

/** Lists the LLM keys of the workspace, newest first, without their secrets. */
export const listKeys = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/keys",
  base: "api",
  access: { managementScope: "read:llm-keys", session: true },
  counting: "at-door",
  summary: "List LLM keys.",
  tag: "Account",
  query: z.object({ include_disabled: z.enum(["true", "false"]).optional() }),
  response: z.object({ object: z.literal("list"), data: z.array(llmKeyObjectSchema) }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const { workspace } = context.caller as AccountCaller;
    const includeDisabled = truthIn(context.query, "include_disabled");
    // Access tokens of connected apps are managed with their connection.
    const keys = (await deps.llmKeys.list(workspace.id, { includeDisabled })).filter(({ connection }) => connection === undefined);
    return context.json({ object: "list", data: await keyObjects(deps, { workspace, keys }) });
  },
});
