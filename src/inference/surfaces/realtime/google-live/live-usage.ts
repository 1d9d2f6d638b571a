import { asObject } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;

/** Names of kinds of tokens at Google, and in the details of OpenAI. */
const kinds: Readonly<Record<string, "text_tokens" | "audio_tokens" | "image_tokens">> = {
  TEXT: "text_tokens",
  DOCUMENT: "text_tokens",
  AUDIO: "audio_tokens",
  IMAGE: "image_tokens",
  VIDEO: "image_tokens",
};

/** Returns tokens by their kind. */
function byKind(details: unknown): Record<string, number> {
  const tokens: Record<string, number> = {};
  for (const entry of Array.isArray(details) ? details : []) {
    const { modality, tokenCount } = asObject(entry) ?? {};
    const kind = kinds[String(modality)] ?? "text_tokens";
    tokens[kind] = (tokens[kind] ?? 0) + count(tokenCount);
  }
  return tokens;
}

const sum = (tokens: Readonly<Record<string, number>>): number =>
  Object.values(tokens).reduce((total, each) => total + each, 0);

/** Adds the counts of two usages, member by member. */
function added(one: Fields, other: Fields): Record<string, unknown> {
  const total: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const [before, nested] = [total[name], asObject(value)];
    total[name] =
      nested === undefined ? count(before) + count(value) : added(asObject(before) ?? {}, nested);
  }
  return total;
}

/**
 * Returns what Gemini Live has reported in `usageMetadata`, all of it added, as the usage of a
 * response.
 */
export const liveUsage = (usages: readonly Fields[]): Record<string, unknown> =>
  usages.map(usageOf).reduce(added, usageOf({}));

function usageOf(usage: Fields): Record<string, unknown> {
  const thoughts = count(usage["thoughtsTokenCount"]);
  const sent = byKind(usage["promptTokensDetails"]);
  const tools = byKind(usage["toolUsePromptTokensDetails"]);
  for (const [kind, tokens] of Object.entries(tools)) sent[kind] = (sent[kind] ?? 0) + tokens;
  const made = byKind(usage["responseTokensDetails"]);
  const input = Math.max(
    sum(sent),
    count(usage["promptTokenCount"]) + count(usage["toolUsePromptTokenCount"]),
  );
  const output = Math.max(sum(made), count(usage["responseTokenCount"])) + thoughts;
  const cached = count(usage["cachedContentTokenCount"]);
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_token_details: {
      ...sent,
      cached_tokens: cached,
      ...(Array.isArray(usage["cacheTokensDetails"]) && {
        cached_tokens_details: byKind(usage["cacheTokensDetails"]),
      }),
    },
    output_token_details: { ...made, text_tokens: (made["text_tokens"] ?? 0) + thoughts },
  };
}
