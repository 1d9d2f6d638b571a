import { z } from "zod";
import type { LlmKeyCaller, AccountCaller } from "../../account/keys/caller.ts";
import type { LlmKey } from "../../account/keys/llm-key.ts";
import { narrowedTier } from "../../account/limits/rate-limiter.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { limitRemaining } from "./llm-key-object.ts";

/** Requests a minute that a key is let through with: a limit of its own above the plan's does not widen it. */
const effectiveRateLimit = ({ counters: { tiers } }: Dependencies, { key, workspace }: Pick<LlmKeyCaller, "key" | "workspace">): number =>
  narrowedTier(tiers.tierFor(workspace.plan, "paid"), key.rateLimitPerMinute).perMinute;

/** What the calling LLM key is, in the compact form. */
export const authKey = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/auth/key",
  base: "api",
  access: { llmKey: true, ofItself: true },
  counting: "at-door",
  summary: "Describe the calling LLM key.",
  tag: "Account",
  response: z.object({
    key: z.object({
      prefix: z.string(), name: z.string(), created_at: z.string(), rate_limit: z.number(), usage: z.number(),
      limit: z.number().nullable(), is_free_tier: z.boolean(),
    }),
  }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const { ledger } = deps;
    const { key, workspace } = context.caller as LlmKeyCaller;
    await ledger.refresh(workspace.id);
    return context.json({
      key: {
        prefix: key.label,
        name: key.name,
        created_at: new Date(key.createdAtMs).toISOString(),
        rate_limit: effectiveRateLimit(deps, { key, workspace }),
        usage: usdFromNano(ledger.book.key(key.id).spend.total),
        limit: key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
        is_free_tier: workspace.plan === "free",
      },
    });
  },
});

async function newestActiveKey({ llmKeys, clock }: Dependencies, workspaceId: string): Promise<LlmKey> {
  const keys = await llmKeys.list(workspaceId, { includeDisabled: false });
  const active = keys.find((key) => key.expiresAtMs === null || key.expiresAtMs > clock.nowMs());
  if (active === undefined) throw new GatewayError("not_found", "The workspace has no active LLM key.");
  return active;
}

/** The current key in OpenRouter's form: the calling LLM key, or the workspace's newest active one. */
export const currentKey = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/key",
  base: "api",
  access: { llmKey: true, ofItself: true, managementScope: "read:llm-keys", session: true },
  counting: "at-door",
  summary: "Describe the current key in OpenRouter's form.",
  tag: "Account",
  response: z.object({
    data: z.object({
      label: z.string(), limit: z.number().nullable(), limit_remaining: z.number().nullable(), usage: z.number(),
      is_free_tier: z.boolean(), rate_limit: z.object({ requests: z.number(), interval: z.string() }),
    }),
  }),
  encodeError: encodeContractError,
  async handle(context, deps) {
    const caller = context.caller as LlmKeyCaller | AccountCaller;
    const key = caller.kind === "llm-key" ? caller.key : await newestActiveKey(deps, caller.workspace.id);
    await deps.ledger.refresh(caller.workspace.id);
    const account = deps.ledger.book.key(key.id);
    return context.json({
      data: {
        label: key.label,
        limit: key.limitNanoUsd === null ? null : usdFromNano(key.limitNanoUsd),
        limit_remaining: limitRemaining(key, { account, nowMs: deps.clock.nowMs() }),
        usage: usdFromNano(account.spend.total),
        is_free_tier: caller.workspace.plan === "free",
        rate_limit: { requests: effectiveRateLimit(deps, { key, workspace: caller.workspace }), interval: "60s" },
      },
    });
  },
});
