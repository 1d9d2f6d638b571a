import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { EncodeState } from "../shared/encode-state.ts";
import { asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";

/** Models without prompt caching: docs.aws.amazon.com, "prompt-caching" (2026-11). */
const uncached = /llama|mistral|pixtral|deepseek|ai21\.|cohere\.|writer\./;

/** Returns whether a model caches the prompts that are marked for it. */
export const cachesPrompts = (upstreamModel: string): boolean => !uncached.test(upstreamModel);

/** Returns a body with the cache points that the model does not answer with 400. */
export function fitCachePoints(body: JsonObject, state: EncodeState): JsonObject {
  const { upstreamModel } = state.options;
  const isNova = upstreamModel.includes("nova");
  if (cachesPrompts(upstreamModel) && !isNova) return body;
  const points = new PointFilter(isNova ? novaPointsMax : 0);
  const { messages, system, toolConfig, ...rest } = body;
  const fitted = {
    ...rest,
    // From the last to the first, since each covers everything before it.
    messages: points.filtered(messages),
    system: points.filtered(system),
    toolConfig: points.ofTools(toolConfig),
  };
  if (!points.isChanged) return body;
  state.lose(
    "cache_control",
    isNova
      ? "Nova caches at four places outside of tools and results"
      : "the model caches no prompts",
  );
  return withoutUndefined<JsonObject>(fitted);
}

/**
 * What Nova takes: four points, five minutes each, none in the list of tools or behind a result.
 * Sources: NousResearch/hermes-agent#97281 (2026-08), danny-avila/LibreChat#13838 (2026-06),
 * aws-samples/bedrock-engineer#71 (2025-04).
 */
const novaPointsMax = 4;

const isPoint = (value: JsonValue | undefined): boolean =>
  asObject(value)?.cachePoint !== undefined;

/** Leaves out cache points, from the last one on. */
class PointFilter {
  isChanged = false;
  private left: number;

  constructor(most: number) {
    this.left = most;
  }

  ofTools(config: JsonValue | undefined): JsonValue | undefined {
    const fields = asObject(config);
    const tools = asArray(fields?.tools);
    if (fields === undefined || tools === undefined) return config;
    const kept = tools.filter((tool) => !isPoint(tool));
    this.isChanged ||= kept.length < tools.length;
    return { ...fields, tools: kept };
  }

  /** Returns blocks, or messages with blocks, with the points that are taken. */
  filtered(value: JsonValue | undefined): JsonValue | undefined {
    const list = asArray(value);
    if (list === undefined) return value;
    const kept: JsonValue[] = [];
    for (let index = list.length - 1; index >= 0; index -= 1) {
      const entry = list[index] ?? null;
      const before = asObject(list[index - 1]);
      const fitted = isPoint(entry) ? this.point(entry, before) : this.withContent(entry);
      if (fitted !== undefined) kept.unshift(fitted);
    }
    return kept;
  }

  private point(point: JsonValue, before: JsonObject | undefined): JsonValue | undefined {
    const { ttl } = asObject(asObject(point)?.cachePoint) ?? {};
    const isTaken = this.left > 0 && before?.toolResult === undefined;
    if (!isTaken || ttl === "1h") this.isChanged = true;
    if (!isTaken) return undefined;
    this.left -= 1;
    return { cachePoint: { type: "default" } };
  }

  private withContent(entry: JsonValue): JsonValue {
    const fields = asObject(entry);
    return fields?.content === undefined
      ? entry
      : { ...fields, content: this.filtered(fields.content) };
  }
}
