import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { EncodeState } from "../encode-state.ts";
import { asArray, asObject } from "../request-fields.ts";

/** Anthropic's bound on cache markers in one request. */
const markersMax = 4;

/**
 * The body with at most as many cache markers as Anthropic takes. Other dialects have no such bound; the
 * last ones are kept, since each covers everything before it.
 */
export function limitCacheMarkers(body: JsonObject, state: EncodeState): JsonObject {
  if (state.sameDialect) return body;
  let surplus = countMarkers(body) - markersMax;
  if (surplus <= 0) return body;
  state.lose("cache_control", `messages takes ${markersMax} cache markers; the last ones are kept`);
  const strip = (value: JsonValue | undefined): JsonValue | undefined => {
    const list = asArray(value);
    if (list !== undefined) return list.map((entry) => strip(entry) ?? null);
    const object = asObject(value);
    if (object === undefined) return value;
    const { cache_control: marker, ...rest } = object;
    const inner = "content" in rest ? { ...rest, content: strip(rest.content) } : rest;
    if (marker === undefined) return inner;
    surplus -= 1;
    return surplus >= 0 ? inner : { ...inner, cache_control: marker };
  };
  // In the order in which the model reads them.
  const stripped: Record<string, JsonValue | undefined> = { ...body };
  for (const field of promptFields) if (field in body) stripped[field] = strip(body[field]);
  return stripped;
}

const promptFields = ["tools", "system", "messages"] as const;

const countMarkers = (body: JsonObject): number =>
  promptFields.reduce((count, field) => count + markersOf(body[field]), 0);

function markersOf(value: JsonValue | undefined): number {
  const list = asArray(value);
  if (list !== undefined) return list.reduce<number>((count, entry) => count + markersOf(entry), 0);
  const object = asObject(value);
  if (object === undefined) return 0;
  return (object.cache_control === undefined ? 0 : 1) + markersOf(object.content);
}
