import { z } from "zod";
import type { ManagementKeyCaller } from "../../account/keys/caller.ts";
import type { LlmKey } from "../../account/keys/llm-key.ts";
import type { Workspace } from "../../account/workspaces/workspace.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { nanoFromUsd } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { llmKeyObject, llmKeyObjectSchema } from "./llm-key-object.ts";

const keyBodyBytesMax = 256 * 1024;

const createKeySchema = z.object({
  // No database keeps a zero byte in a text.
  name: z.string().trim().min(1, "is required and must not be empty").max(200).regex(/^[^\0]*$/, "must not hold a zero byte"),
  expires_at: z.iso.datetime({ offset: true, error: "must be an ISO 8601 time such as 2027-01-31T00:00:00Z" }).nullish(),
  limit: z.number().nonnegative().max(9_000_000).nullish(),
  limit_reset: z.enum(["daily", "weekly", "monthly"]).nullish(),
  include_byok_in_limit: z.boolean().nullish(),
  rate_limit: z.int().positive().nullish(),
  disabled: z.boolean().nullish(),
  allowed_models: z.array(z.string().min(1)).nullish(),
  allowed_endpoints: z.array(z.string().min(1)).nullish(),
  tpm: z.int().positive().nullish(),
});

/** The public records of keys of one workspace. */
export async function keyObjects(
  deps: Dependencies,
  { workspace, keys }: { workspace: Workspace; keys: readonly LlmKey[] },
): Promise<z.infer<typeof llmKeyObjectSchema>[]> {
  const nowMs = deps.clock.nowMs();
  const requests = await deps.ledgerStore.monthlyRequests(workspace.id, nowMs);
  const planRateLimitPerMinute = deps.counters.tiers.tierFor(workspace.plan, "paid").perMinute;
  return keys.map((key) => llmKeyObject(key, {
    account: deps.ledger.book.key(key.id), monthlyRequests: requests.get(key.id) ?? 0, planRateLimitPerMinute,
    isFreeTier: workspace.plan === "free", nowMs,
  }));
}

/** Creates an LLM key; its secret is shown in this answer and never again. */
export const createKey = defineEndpoint<Dependencies, z.infer<typeof createKeySchema>>({
  method: "POST",
  path: "/keys",
  base: "api",
  access: { managementScope: "write:llm-keys" },
  counting: "at-door",
  bodyBytesMax: keyBodyBytesMax,
  summary: "Create an LLM key.",
  tag: "Account",
  body: createKeySchema,
  response: z.object({ key: z.string(), data: llmKeyObjectSchema }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const { workspace } = context.caller as ManagementKeyCaller;
    const { body } = context;
    const { secret, key } = await deps.llmKeyMinter.mint({
      workspaceId: workspace.id,
      name: body.name,
      creatorUserId: (context.caller as ManagementKeyCaller).key.id,
      expiresAtMs: body.expires_at ? Date.parse(body.expires_at) : null,
      limitNanoUsd: typeof body.limit === "number" ? nanoFromUsd(body.limit) ?? null : null,
      limitReset: body.limit_reset ?? null,
      includeByokInLimit: body.include_byok_in_limit ?? false,
      rateLimitPerMinute: body.rate_limit ?? null,
      disabled: body.disabled ?? false,
      allowedModels: body.allowed_models?.map((id) => id.toLowerCase()) ?? null,
      allowedEndpoints: body.allowed_endpoints ?? null,
      tokensPerMinute: body.tpm ?? null,
    });
    const [data] = await keyObjects(deps, { workspace, keys: [key] });
    return context.json({ key: secret, data }, { headers: { "cache-control": "no-store" } });
  },
});

/** Lists the LLM keys of the workspace, newest first, without their secrets. */
export const listKeys = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/keys",
  base: "api",
  access: { managementScope: "read:llm-keys" },
  counting: "at-door",
  summary: "List LLM keys.",
  tag: "Account",
  query: z.object({ include_disabled: z.enum(["true", "false"]).optional() }),
  response: z.object({ object: z.literal("list"), data: z.array(llmKeyObjectSchema) }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const { workspace } = context.caller as ManagementKeyCaller;
    const includeDisabled = context.query.get("include_disabled") === "true";
    const keys = await deps.llmKeys.list(workspace.id, { includeDisabled });
    return context.json({ object: "list", data: await keyObjects(deps, { workspace, keys }) });
  },
});
