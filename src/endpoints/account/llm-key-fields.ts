import { z } from "zod";
import type { LlmKey } from "../../account/keys/llm-key.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
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
  typeof usd === "number" ? (nanoFromUsd(usd) ?? 0n) : null;

/** Tokens a minute. */
export const tokensPerMinuteField = z.int().positive();

/** Models that a key may ask. */
export const allowedModelsField = z.array(z.string().min(1));

/** Paths that a key may call. */
export const allowedEndpointsField = z
  .array(z.string().min(1))
  .describe(
    "Paths of this API, with or without /api/v1, parameters as {id} or :id. An empty list opens every endpoint.",
  );

/** Model ids as keys keep them; null where every model may be asked. */
export const allowedModelsOf = (
  ids: readonly string[] | null | undefined,
): readonly string[] | null => ids?.map((id) => id.toLowerCase()) ?? null;

/**
 * Paths as keys keep and show them, such as `/api/v1/responses/{id}`, each once; null where every endpoint may be called.
 * Throws `bad_request` naming the entry that is no endpoint's path.
 */
export function allowedEndpointsOf(
  entries: readonly string[] | null | undefined,
  paths: EndpointPaths,
): readonly string[] | null {
  if (entries === null || entries === undefined) return null;
  return [
    ...new Set(
      entries.map((entry, index) => paths.find(entry) ?? noSuchEndpoint(entry, { index, paths })),
    ),
  ];
}

function noSuchEndpoint(
  entry: string,
  { index, paths }: { index: number; paths: EndpointPaths },
): never {
  const param = `allowed_endpoints[${index}]`;
  const closest = paths.closest(entry);
  const hint = closest === undefined ? "the list of paths is at /docs" : `did you mean ${closest}?`;
  throw new GatewayError(
    "bad_request",
    `${param}: there is no endpoint ${entry.slice(0, 200)}; ${hint}`,
    { param },
  );
}

/** What may be said of a new LLM key; null means the default, wherever a field has one. */
export const newKeySchema = z.object({
  name: nameField,
  expires_at: momentField.nullish(),
  limit: limitField.nullish(),
  limit_reset: limitResetField.nullish(),
  include_byok_in_limit: z.boolean().nullish(),
  rate_limit: rateLimitField.nullish(),
  disabled: z.boolean().nullish(),
  allowed_models: allowedModelsField.nullish(),
  allowed_endpoints: allowedEndpointsField.nullish(),
  tpm: tokensPerMinuteField.nullish(),
});

/** A body that `newKeySchema` has checked. */
export type NewKeyBody = z.infer<typeof newKeySchema>;

/** The key that a body describes. Throws `bad_request` where it would have ended already, or names a path that no endpoint has. */
export const newKeyFieldsOf = (
  body: NewKeyBody,
  { nowMs, endpointPaths }: { nowMs: number; endpointPaths: EndpointPaths },
) =>
  ({
    name: body.name,
    expiresAtMs: expiryMs(body.expires_at, nowMs),
    limitNanoUsd: limitNano(body.limit),
    limitReset: body.limit_reset ?? null,
    includeByokInLimit: body.include_byok_in_limit ?? false,
    rateLimitPerMinute: body.rate_limit ?? null,
    disabled: body.disabled ?? false,
    allowedModels: allowedModelsOf(body.allowed_models),
    allowedEndpoints: allowedEndpointsOf(body.allowed_endpoints, endpointPaths),
    tokensPerMinute: body.tpm ?? null,
  }) satisfies Partial<LlmKey>;
