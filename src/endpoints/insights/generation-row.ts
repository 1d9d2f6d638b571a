import { z } from "zod";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { CsvValue } from "./csv.ts";

/** One request in a list. */
export const generationRowSchema = lazily(() =>
  z
    .object({
      id: z.string().describe("`gen_` id; GET /generation/{id} and /explain take it."),
      object: z.literal("generation"),
      created_at: z.string().describe("When the request was seen, UTC."),
      key_id: z.string(),
      key_name: z
        .string()
        .nullable()
        .describe("Name of the key that asked; null where it is unknown."),
      user_id: z.string().nullable().describe("Who made that key."),
      surface: z.string().describe("Kind of inference, such as chat, messages or embeddings."),
      model: z.string().describe("The model that served or was tried last."),
      requested_model: z.string(),
      provider_name: z
        .string()
        .nullable()
        .describe("The provider that served or was tried last; null where none was asked."),
      upstream_model: z.string().nullable().describe("What the provider calls the model."),
      status: z.enum(["completed", "cut", "cancelled", "cached", "failed"]),
      error: z
        .object({ code: z.string(), status: z.int() })
        .nullable()
        .describe("What a failed request was answered with."),
      finish_reason: z.string().nullable(),
      streamed: z.boolean(),
      attempts: z.int().describe("Providers that were asked."),
      fallback: z.boolean().describe("Whether another provider or model was tried first."),
      tokens_prompt: z.int(),
      tokens_completion: z.int(),
      tokens_cached: z
        .int()
        .describe("Tokens of the prompt that were read from the provider's cache."),
      tokens_reasoning: z.int().describe("Tokens of the completion that were thoughts."),
      total_cost: z.number().describe("What was charged, USD."),
      credential_source: z
        .string()
        .describe("Whose provider key was used: platform, own_byok or donated_byok."),
      is_byok: z.boolean().describe("Whether a provider key of the workspace paid."),
      app_title: z.string().nullable().describe("The app as it named itself in X-Title."),
      origin: z.string().nullable().describe("Where the app is, as it said in HTTP-Referer."),
      session_id: z.string().nullable(),
      preset_id: z.string().nullable().describe("The preset that was named as the model."),
      latency: z
        .number()
        .describe("Milliseconds until the first content of a stream, or the whole answer."),
      total_time: z.number().describe("Milliseconds until the end of the answer."),
    })
    .meta({ id: "GenerationRow" }),
);

/** What is known of a key that may be deleted. */
export interface KeyNames {
  name: string;
  creatorUserId: string;
}

/** A record as one line of a list. */
export function generationRow(
  record: GenerationRecord,
  keys: ReadonlyMap<string, KeyNames>,
): AnswerOf<typeof generationRowSchema> {
  const { detail, attempts } = record;
  const key = keys.get(record.keyId);
  return {
    id: record.id,
    object: "generation",
    created_at: new Date(record.createdAtMs).toISOString(),
    key_id: record.keyId,
    key_name: key?.name ?? null,
    user_id: key?.creatorUserId ?? null,
    surface: record.surface,
    model: record.model,
    requested_model: record.requestedModel,
    provider_name: record.provider || null,
    upstream_model: record.upstreamModel || null,
    status: record.status,
    error: detail.error ?? null,
    finish_reason: record.finishReason,
    streamed: record.streamed,
    attempts: attempts.length,
    fallback: attempts.length > 1,
    tokens_prompt: record.promptTokens,
    tokens_completion: record.completionTokens,
    tokens_cached: detail.usage["cacheReadTokens"] ?? 0,
    tokens_reasoning: detail.usage["reasoningTokens"] ?? 0,
    total_cost: usdFromNano(record.costNanoUsd),
    credential_source: detail.credentialSource ?? "platform",
    is_byok: detail.credentialSource === "own_byok",
    app_title: detail.appTitle ?? null,
    origin: detail.origin ?? null,
    session_id: detail.sessionId ?? null,
    preset_id: detail.presetId ?? null,
    latency: record.firstTokenMs ?? record.latencyMs,
    total_time: record.latencyMs,
  };
}

/** Columns of a table of requests: the members of a row, the error by its code. */
export const rowColumns = lazily((): readonly string[] =>
  Object.keys(generationRowSchema().shape).filter((name) => name !== "object"),
);

/** The cells of a row in the order of `rowColumns`. */
export function rowCells({ error, ...row }: AnswerOf<typeof generationRowSchema>): CsvValue[] {
  const cells: Readonly<Record<string, CsvValue>> = { ...row, error: error?.code ?? null };
  return rowColumns().map((name) => cells[name] ?? null);
}
