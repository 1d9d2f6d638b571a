import { z } from "zod";
import type { LlmKey } from "../../account/keys/llm-key.ts";
import { nanoFromUsd } from "../../platform/lib/money.ts";
import { expiryMs, momentField, nameField } from "./account-fields.ts";

/** A spending limit in USD, within what is counted exactly. */
export const limitField = z.number().nonnegative().max(9_000_000);

/** The window that a limit is measured over. */
export const limitResetField = z.enum(["daily", "weekly", "monthly"]);

/** Requests a minute. */
export const rateLimitField = z.int().positive();

/** A limit in nano-USD; null where there is none. One that is too small to be written in digits is nothing, not no limit. */
export const limitNano = (usd: number | null | undefined): bigint | null =>
  typeof usd === "number" ? nanoFromUsd(usd) ?? 0n : null;

/** What may be said of a new LLM key; null means the default, wherever a field has one. */
export const newKeySchema = z.object({
  name: nameField,
  expires_at: momentField.nullish(),
  limit: limitField.nullish(),
  limit_reset: limitResetField.nullish(),
  include_byok_in_limit: z.boolean().nullish(),
  rate_limit: rateLimitField.nullish(),
  disabled: z.boolean().nullish(),
  allowed_models: z.array(z.string().min(1)).nullish(),
  allowed_endpoints: z.array(z.string().min(1)).nullish(),
  tpm: z.int().positive().nullish(),
});

/** A body that `newKeySchema` has checked. */
export type NewKeyBody = z.infer<typeof newKeySchema>;

/** The key that a body describes. Throws `bad_request` where it would have ended already. */
export const newKeyFieldsOf = (body: NewKeyBody, nowMs: number) => ({
  name: body.name,
  expiresAtMs: expiryMs(body.expires_at, nowMs),
  limitNanoUsd: limitNano(body.limit),
  limitReset: body.limit_reset ?? null,
  includeByokInLimit: body.include_byok_in_limit ?? false,
  rateLimitPerMinute: body.rate_limit ?? null,
  disabled: body.disabled ?? false,
  allowedModels: body.allowed_models?.map((id) => id.toLowerCase()) ?? null,
  allowedEndpoints: body.allowed_endpoints ?? null,
  tokensPerMinute: body.tpm ?? null,
}) satisfies Partial<LlmKey>;
