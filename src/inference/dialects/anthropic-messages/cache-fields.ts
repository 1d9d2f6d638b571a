import type { CacheMarker } from "../../canonical/cache-marker.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asObject } from "../request-fields.ts";

/** The marker of a block or tool; undefined when it has none. */
export function decodeCache(object: JsonObject): CacheMarker | undefined {
  const marker = asObject(object.cache_control);
  if (marker === undefined) return undefined;
  const { ttl } = marker;
  return ttl === "5m" || ttl === "1h" ? { ttl } : {};
}

/** The marker's wire field. OpenAI's half hour has no equal here and becomes the default. */
export function cacheFields(cache: CacheMarker | undefined): JsonObject {
  if (cache === undefined) return {};
  const { ttl } = cache;
  return { cache_control: { type: "ephemeral", ...((ttl === "5m" || ttl === "1h") && { ttl }) } };
}
