import { editMembers, memberText } from "../../../platform/kernel/json/json-members.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import {
  coveringDelivered,
  type GatewayFacts,
  type MeteredUsage,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { totalCacheWrites, totalOutputTokens, type Usage } from "../../../platform/kernel/usage.ts";
import {
  CountReader,
  asArray,
  asNumber,
  asObject,
  asString,
  withoutUndefined,
} from "../shared/wire-fields.ts";
import { fieldsOfOwn, ownFields } from "./answer-fields.ts";

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
 * Converts usage as Messages reports it to disjoint counts: `input_tokens` excludes cache reads and
 * writes, and reasoning is within `output_tokens`. Impossible counts are clamped and flagged;
 * undefined when the value has no usage.
 */
export function readUsage(value: unknown): MeteredUsage | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const counts = new CountReader();
  const input = counts.read(fields.input_tokens);
  const output = counts.read(fields.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const usage = withoutUndefined<Usage>({
    inputTokens: input,
    cacheReadTokens: counts.read(fields.cache_read_input_tokens),
    ...readWrites(fields, counts),
    ...readOutput(fields, { output, counts }),
    searches: searchCount(fields, counts),
  });
  addCompactions(usage, { iterations: fields.iterations, counts });
  return withoutUndefined<MeteredUsage>({
    usage,
    estimated: false,
    clamped: counts.clamped,
    providerCostUsd: providerCost(fields),
    extensions: ownFields(fields, countFields),
    levels: readLevels(fields),
  });
}

/** Returns the searches that Anthropic charges one by one; undefined where there were none. */
const searchCount = (fields: JsonObject, counts: CountReader): number | undefined =>
  counts.read(asObject(fields.server_tool_use)?.web_search_requests) || undefined;

/** Returns the speed, region and tier that a message was made at, where it names any. */
function readLevels({
  service_tier: tier,
  speed,
  inference_geo: region,
}: JsonObject): MeteredUsage["levels"] {
  const levels = withoutUndefined<NonNullable<MeteredUsage["levels"]>>({
    service_tier: asString(tier),
    speed: asString(speed),
    inference_geo: asString(region),
  });
  return Object.keys(levels).length === 0 ? undefined : levels;
}

/**
 * Adds the tokens with which the provider shortened the conversation: they are charged, and not
 * among the counts of the message itself. Source: `iterations` of `BetaUsage`, npm
 * @anthropic-ai/sdk (2026-11).
 */
function addCompactions(
  usage: Usage,
  { iterations, counts }: { iterations: unknown; counts: CountReader },
): void {
  for (const value of asArray(iterations) ?? []) {
    const iteration = asObject(value);
    if (iteration?.type !== "compaction") continue;
    const added: Usage = withoutUndefined<Usage>({
      inputTokens: counts.read(iteration.input_tokens),
      outputTokens: counts.read(iteration.output_tokens),
      cacheReadTokens: counts.read(iteration.cache_read_input_tokens),
      ...readWrites(iteration, counts),
    });
    for (const part of Object.keys(added) as (keyof Usage)[])
      usage[part] = (usage[part] ?? 0) + (added[part] ?? 0);
  }
}

/**
 * Returns cache writes by lifetime where the upstream separates them; the plain count is their sum.
 */
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

/** Returns what the provider says that it charges, where it is a gateway that reports this. */
function providerCost(fields: JsonObject): number | undefined {
  const cost =
    asNumber(fields.cost) ?? asNumber(asObject(fields.cost_details)?.upstream_inference_cost);
  return cost !== undefined && cost >= 0 ? cost : undefined;
}

/** The counts that the last event of a stream repeats. */
const repeatedCounts = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
] as const;

/**
 * The usage of a stream so far. The start reports the input and hardly any output, and the end the
 * totals, so the latest of each count applies. Until the end, the output is what was delivered.
 */
export class UsageTally {
  private fields: JsonObject | undefined;
  private characters = 0;
  private isFinal = false;

  /** Takes `usage` of `message_start`. */
  start(usage: unknown): void {
    this.merge(usage);
  }

  /** Takes `usage` of `message_delta`. */
  end(usage: unknown): void {
    this.isFinal ||= asObject(usage) !== undefined;
    this.merge(usage);
  }

  /** Adds delivered characters. */
  said(characters: number): void {
    this.characters += characters;
  }

  /** Returns the usage; undefined while nothing was reported. */
  metered(): MeteredUsage | undefined {
    const reported = readUsage(this.fields);
    if (reported === undefined || this.isFinal) return reported;
    return coveringDelivered(reported, this.characters);
  }

  /**
   * Returns the last usage of a stream, as JSON text, with the counts that the provider sent only
   * at the start. Anthropic repeats them at the end, and some clients read them only there.
   */
  complete(last: string): string {
    const { fields } = this;
    if (fields === undefined || !last.startsWith("{")) return last;
    const lacking = repeatedCounts.filter(
      (name) => fields[name] !== undefined && memberText(last, name) === undefined,
    );
    return lacking.length === 0
      ? last
      : editMembers(last, new Map(lacking.map((name) => [name, JSON.stringify(fields[name])])));
  }

  private merge(usage: unknown): void {
    const reported = Object.entries(asObject(usage) ?? {}).filter(
      ([, value]) => value !== null && value !== undefined,
    );
    if (reported.length > 0) this.fields = { ...this.fields, ...Object.fromEntries(reported) };
  }
}

/** Returns the characters that a delta of a block delivers. */
export function deltaLength(delta: JsonObject): number {
  const { text, thinking, partial_json: json } = delta;
  return lengthOf(text) + lengthOf(thinking) + lengthOf(json);
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

/**
 * Encodes `usage` of an answer: uncached input separate from cached, reasoning within the output,
 * and the charge.
 */
export function encodeUsage(
  { usage, extensions }: MeteredUsage,
  gateway: GatewayFacts = {},
): JsonObject {
  return withoutUndefined<JsonObject>({
    input_tokens:
      (usage.inputTokens ?? 0) + (usage.inputAudioTokens ?? 0) + (usage.inputImageTokens ?? 0),
    ...cacheCounts(usage),
    output_tokens: totalOutputTokens(usage),
    output_tokens_details:
      usage.reasoningTokens === undefined ? undefined : { thinking_tokens: usage.reasoningTokens },
    server_tool_use:
      usage.searches === undefined
        ? undefined
        : { web_search_requests: usage.searches, web_fetch_requests: 0 },
    ...fieldsOfOwn(extensions),
    cost: gateway.costUsd,
    cost_details:
      gateway.upstreamCostUsd === undefined
        ? undefined
        : { upstream_inference_cost: gateway.upstreamCostUsd },
  });
}

function cacheCounts(usage: Usage): JsonObject {
  const { cacheReadTokens, cacheWriteTokens, cacheWriteOneHourTokens } = usage;
  return {
    cache_creation_input_tokens: totalCacheWrites(usage),
    cache_read_input_tokens: cacheReadTokens,
    cache_creation:
      cacheWriteOneHourTokens === undefined
        ? undefined
        : {
            ephemeral_5m_input_tokens: cacheWriteTokens ?? 0,
            ephemeral_1h_input_tokens: cacheWriteOneHourTokens,
          },
  };
}

/**
 * Returns the JSON text of the usage that the client is shown: the provider's own, with the charge
 * in USD and the provider's cost where it is known; the gateway's where the provider's cannot be
 * shown.
 */
export function pricedUsageText(options: {
  original: string | undefined;
  metered: MeteredUsage;
  chargedNano: bigint;
}): string {
  const { original, metered, chargedNano } = options;
  const usable = original?.startsWith("{") === true && !metered.clamped && !metered.estimated;
  const base = usable ? original : JSON.stringify(encodeUsage(metered));
  const { providerCostUsd } = metered;
  return editMembers(
    base,
    new Map<string, string | undefined>([
      ["cost", JSON.stringify(usdFromNano(chargedNano))],
      [
        "cost_details",
        providerCostUsd === undefined
          ? undefined
          : JSON.stringify({ upstream_inference_cost: providerCostUsd }),
      ],
    ]),
  );
}

/**
 * Removes the provider's own cost from usage that is not the last one: `cost` is what the client is
 * charged.
 */
export const withoutCost = (usage: string): string =>
  usage.includes('"cost')
    ? editMembers(
        usage,
        new Map([
          ["cost", undefined],
          ["cost_details", undefined],
        ]),
      )
    : usage;
