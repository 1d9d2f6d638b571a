import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { EncodeState } from "../shared/encode-state.ts";
import { asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Models without prompt caching, which answer 403 or 400 to cache points: docs.aws.amazon.com,
 * "prompt-caching" (2026-11), BerriAI/litellm#39210 (2026-09).
 */
const uncached =
  /llama|mistral|pixtral|deepseek|ai21\.|cohere\.|writer\.|nemotron|qwen|gpt-oss|kimi|minimax|gemma|glm|titan/;

/** Returns whether a model caches the prompts that are marked for it. */
export const cachesPrompts = (upstreamModel: string): boolean => !uncached.test(upstreamModel);

/** What a model takes of cache points. */
interface PointRule {
  most: number;
  /** Whether it takes them among tools and behind results. */
  everywhere: boolean;
  /** Whether it keeps what is marked for an hour. */
  hours: boolean;
  /** What is said where some are left out. */
  reason: string;
}

/** Models of Claude that keep prompts for five minutes: strands-agents/harness-sdk#2042 (2026-04). */
const fiveMinutes = /claude-(?:3|(?:opus|sonnet)-4-(?:[01]-)?20)/;

/**
 * Returns the rule of a model. Nova takes four points, five minutes each, none in the list of tools
 * or behind a result. Sources: NousResearch/hermes-agent#97281 (2026-08),
 * danny-avila/LibreChat#13838 (2026-06), aws-samples/bedrock-engineer#71 (2025-04).
 */
function ruleOf(upstreamModel: string): PointRule {
  if (!cachesPrompts(upstreamModel))
    return { most: 0, everywhere: false, hours: false, reason: "the model caches no prompts" };
  if (upstreamModel.includes("nova"))
    return {
      most: 4,
      everywhere: false,
      hours: false,
      reason: "Nova caches at four places outside of tools and results",
    };
  return {
    most: 4,
    everywhere: true,
    hours: !fiveMinutes.test(upstreamModel),
    reason: "the model caches at four places; the last are kept",
  };
}

interface Place {
  point: JsonValue;
  /** Whether it stands among tools or behind a result. */
  isOfTools: boolean;
}

/**
 * Returns a body with the cache points that the model does not answer with 400: the last ones, since
 * each covers everything before it, and none that is kept for longer than one before it
 * (Portkey-AI/gateway#1762, 2026-08).
 */
export function fitCachePoints(body: JsonObject, state: EncodeState): JsonObject {
  const { messages, system, toolConfig } = body;
  const config = asObject(toolConfig);
  // In the order in which the model reads them.
  const places = [
    ...pointsIn(config?.tools).map(({ point }) => ({ point, isOfTools: true })),
    ...pointsIn(system),
    ...pointsIn(messages),
  ];
  if (places.length === 0) return body;
  const rule = ruleOf(state.options.upstreamModel);
  const fitting = places.filter(({ isOfTools }) => rule.everywhere || !isOfTools);
  const taken = fitting.slice(Math.max(0, fitting.length - rule.most));
  const kept = new Map<JsonValue, JsonValue>();
  let isEarly = rule.hours;
  let isShortened = false;
  for (const { point } of taken) {
    const lifetime = lifetimeOf(point);
    isEarly &&= lifetime === "1h";
    const isTooLong = lifetime === "1h" && !isEarly;
    isShortened ||= isTooLong;
    const isFitting = lifetime === undefined || (rule.hours && !isTooLong);
    kept.set(point, isFitting ? point : plainPoint);
  }
  if (taken.length < places.length) state.lose("cache_control", rule.reason);
  if (isShortened)
    state.lose("cache_control.ttl", "kept for five minutes, as the model or what is before it is");
  if ([...kept].every(([point, fitted]) => point === fitted) && kept.size === places.length)
    return body;
  return withoutUndefined<JsonObject>({
    ...body,
    messages: withPoints(messages, kept),
    system: withPoints(system, kept),
    toolConfig:
      config === undefined ? toolConfig : { ...config, tools: withPoints(config.tools, kept) },
  });
}

const plainPoint: JsonObject = { cachePoint: { type: "default" } };

const isPoint = (value: JsonValue | undefined): boolean =>
  asObject(value)?.cachePoint !== undefined;

const lifetimeOf = (point: JsonValue): unknown => asObject(asObject(point)?.cachePoint)?.ttl;

/** Returns the cache points of blocks, or of messages with blocks, in order. */
function pointsIn(value: JsonValue | undefined): Place[] {
  const list = asArray(value) ?? [];
  return list.flatMap((entry, index): Place[] =>
    isPoint(entry)
      ? [{ point: entry, isOfTools: asObject(list[index - 1])?.toolResult !== undefined }]
      : pointsIn(asObject(entry)?.content),
  );
}

/** Returns blocks, or messages with blocks, with the points that are taken as they are sent. */
function withPoints(
  value: JsonValue | undefined,
  kept: ReadonlyMap<JsonValue, JsonValue>,
): JsonValue | undefined {
  return asArray(value)?.flatMap((entry): JsonValue[] => {
    const fields = asObject(entry);
    if (isPoint(entry)) return [kept.get(entry)].filter((point) => point !== undefined);
    return fields?.content === undefined
      ? [entry]
      : [{ ...fields, content: withPoints(fields.content, kept) }];
  });
}
