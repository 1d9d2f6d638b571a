import type { JsonObject } from "../../canonical/json.ts";
import type { MeteredUsage, Usage } from "../../canonical/usage.ts";
import { CountReader } from "../count-reader.ts";
import { asNumber, asObject } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { ownFields } from "./own-fields.ts";

const countFields: ReadonlySet<string> = new Set([
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "cache_creation",
  "output_tokens",
  "output_tokens_details",
  "cost",
  "cost_details",
]);

/**
 * Usage as Messages reports it, to disjoint counts: `input_tokens` leaves out what was read from and
 * written to the cache, thinking stands within `output_tokens`. Counts that cannot be true are clamped
 * and flagged; undefined when the value holds no usage.
 */
export function readUsage(value: unknown): MeteredUsage | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const counts = new CountReader();
  const input = counts.read(fields.input_tokens);
  const output = counts.read(fields.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  return withoutUndefined<MeteredUsage>({
    usage: withoutUndefined<Usage>({
      inputTokens: input,
      cacheReadTokens: counts.read(fields.cache_read_input_tokens),
      ...readWrites(fields, counts),
      ...readOutput(fields, { output, counts }),
    }),
    estimated: false,
    clamped: counts.clamped,
    providerCostUsd: providerCost(fields),
    extensions: ownFields(fields, countFields),
  });
}

/** Writes by lifetime where they are told apart; their sum is what the plain count says. */
function readWrites(fields: JsonObject, counts: CountReader): Partial<Usage> {
  const lifetimes = asObject(fields.cache_creation);
  const fiveMinutes = counts.read(lifetimes?.ephemeral_5m_input_tokens);
  const oneHour = counts.read(lifetimes?.ephemeral_1h_input_tokens);
  const written = counts.read(fields.cache_creation_input_tokens) ?? sumOf(fiveMinutes, oneHour);
  if (written === undefined) return {};
  const long = oneHour === undefined ? undefined : counts.within(oneHour, written);
  return withoutUndefined<Partial<Usage>>({
    cacheWriteTokens: written - (long ?? 0),
    cacheWriteOneHourTokens: long,
  });
}

const sumOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);

function readOutput(
  fields: JsonObject,
  { output, counts }: { output: number | undefined; counts: CountReader },
): Partial<Usage> {
  if (output === undefined) return {};
  const thinking = counts.read(asObject(fields.output_tokens_details)?.thinking_tokens);
  if (thinking === undefined) return { outputTokens: output };
  const fitting = counts.within(thinking, output);
  return { outputTokens: output - fitting, reasoningTokens: fitting };
}

/** What the provider says it charges, where it is a gateway that tells. */
function providerCost(fields: JsonObject): number | undefined {
  const cost =
    asNumber(fields.cost) ?? asNumber(asObject(fields.cost_details)?.upstream_inference_cost);
  return cost !== undefined && cost >= 0 ? cost : undefined;
}
