import type { MeteredUsage, Usage } from "../canonical/usage.ts";
import { CountReader } from "./count-reader.ts";

/** Members of a JSON object that nobody has checked. */
export type Fields = Readonly<Record<string, unknown>>;

const noFields: Fields = {};

/** The members of a value; none where it is no object. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : noFields;

/**
 * Usage as servers report it that are shaped like chat or Responses, to disjoint counts whose sums are the reported
 * `prompt_tokens` and `completion_tokens`. `prompt_tokens` includes cached ones (OpenAI), Anthropic's
 * `input_tokens` does not; a bare `x_groq` wrapper is opened. Counts that cannot be true are clamped and
 * flagged; undefined when the value holds no usage.
 */
export function readOpenaiUsage(value: unknown): MeteredUsage | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Fields;
  const counts = new CountReader();
  const completion = counts.read(fields.completion_tokens ?? fields.output_tokens);
  const input = counts.read(fields.prompt_tokens ?? fields.input_tokens);
  if (input === undefined && completion === undefined) {
    return fields.x_groq === undefined ? undefined : readOpenaiUsage(fieldsOf(fields.x_groq).usage);
  }
  const usage: Usage = {};
  if (input !== undefined) readInput({ fields, counts, usage, total: input });
  if (completion !== undefined) readOutput({ fields, counts, usage, total: completion });
  const metered: MeteredUsage = { usage, estimated: false, clamped: counts.clamped };
  const cost = providerCost(fields);
  if (cost !== undefined) metered.providerCostUsd = cost;
  return metered;
}

interface Side {
  fields: Fields;
  counts: CountReader;
  usage: Usage;
  /** The reported total of this side. */
  total: number;
}

function readInput({ fields, counts, usage, total }: Side): void {
  const details = fieldsOf(fields.prompt_tokens_details ?? fields.input_tokens_details);
  const cached = counts.read(
    details.cached_tokens ??
      fields.prompt_cache_hit_tokens ??
      fields.cached_tokens ??
      fields.cache_read_input_tokens,
  );
  const written = counts.read(details.cache_write_tokens ?? fields.cache_creation_input_tokens);
  const oneHour = counts.read(fieldsOf(fields.cache_creation).ephemeral_1h_input_tokens);
  const isAnthropic =
    fields.prompt_tokens === undefined && fields.input_tokens_details === undefined;
  let left = isAnthropic ? total + (cached ?? 0) + (written ?? 0) : total;
  if (cached !== undefined) left -= usage.cacheReadTokens = counts.within(cached, left);
  if (written !== undefined) {
    const fitting = counts.within(written, left);
    left -= fitting;
    splitWrites(usage, {
      written: fitting,
      oneHour: oneHour === undefined ? undefined : counts.within(oneHour, fitting),
    });
  }
  left = takeModality(details.audio_tokens, {
    counts,
    left,
    total,
    keep: (count) => (usage.inputAudioTokens = count),
  });
  left = takeModality(details.image_tokens, {
    counts,
    left,
    total,
    keep: (count) => (usage.inputImageTokens = count),
  });
  usage.inputTokens = left;
}

function splitWrites(
  usage: Usage,
  { written, oneHour }: { written: number; oneHour: number | undefined },
): void {
  usage.cacheWriteTokens = written - (oneHour ?? 0);
  if (oneHour !== undefined) usage.cacheWriteOneHourTokens = oneHour;
}

/** Tokens of one modality. They may overlap with cached ones, which is no contradiction: the cache's share comes first. */
function takeModality(
  value: unknown,
  {
    counts,
    left,
    total,
    keep,
  }: { counts: CountReader; left: number; total: number; keep: (count: number) => void },
): number {
  const count = counts.read(value);
  if (count === undefined) return left;
  const taken = Math.min(counts.within(count, total), left);
  keep(taken);
  return left - taken;
}

function readOutput({ fields, counts, usage, total }: Side): void {
  const details = fieldsOf(fields.completion_tokens_details ?? fields.output_tokens_details);
  const reasoning = counts.read(
    details.reasoning_tokens ?? details.thinking_tokens ?? fields.reasoning_tokens,
  );
  let left = total;
  if (reasoning !== undefined) {
    if (isReasoningBeside(fields, { reasoning, completion: total })) left += reasoning;
    left -= usage.reasoningTokens = counts.within(reasoning, left);
  }
  const whole = left;
  left = takeModality(details.audio_tokens, {
    counts,
    left,
    total: whole,
    keep: (count) => (usage.outputAudioTokens = count),
  });
  left = takeModality(details.image_tokens, {
    counts,
    left,
    total: whole,
    keep: (count) => (usage.outputImageTokens = count),
  });
  usage.outputTokens = left;
}

/** xAI (2026) counts reasoning beside `completion_tokens`, not within; its `total_tokens` shows it. */
const isReasoningBeside = (
  fields: Fields,
  { reasoning, completion }: { reasoning: number; completion: number },
): boolean =>
  reasoning > 0 &&
  typeof fields.prompt_tokens === "number" &&
  fields.total_tokens === fields.prompt_tokens + completion + reasoning;

/** What the provider says it charges: `cost` (OpenRouter), `cost.total_cost` (Perplexity), or what its upstream charged. */
function providerCost(fields: Fields): number | undefined {
  const { cost } = fields;
  if (cost === undefined && fields.cost_details === undefined) return undefined;
  const total = typeof cost === "object" ? fieldsOf(cost).total_cost : cost;
  const behind = fieldsOf(fields.cost_details).upstream_inference_cost;
  return (
    [total, behind].find((usd): usd is number => typeof usd === "number" && usd > 0) ??
    [total, behind].find((usd): usd is number => usd === 0)
  );
}
