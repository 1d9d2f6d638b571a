import { GatewayError } from "../../../platform/lib/errors.ts";
import type { Fields } from "../read-fields.ts";
import type { EmbeddingRequest } from "./embedding-request.ts";

/** How long an answer is kept when the request does not say, in seconds. */
const ttlSecondsDefault = 3_600;
/** Longer than this nothing is kept, in seconds: 30 days. */
const ttlSecondsMax = 30 * 24 * 3_600;
/** Characters that a key of the caller's may have. */
const keyLengthMax = 1_024;

/** What a request asks of the cache; undefined keeps it out of the way. */
export type CachePolicy = { ttlSeconds: number; ownKey: string | undefined } | undefined;

/** Reads `gw-cache-ttl`, `gw-skip-cache` and `gw-cache-key`. Throws `invalid_request_error`. */
export function readCachePolicy(headers: Pick<Headers, "get" | "has">): CachePolicy {
  const ttlSeconds = ttlOf(headers.get("gw-cache-ttl"));
  const ownKey = headers.get("gw-cache-key") ?? undefined;
  if (ownKey !== undefined && ownKey.length > keyLengthMax)
    throw refusal("gw-cache-key", `may have at most ${keyLengthMax} characters`);
  const skips = headers.get("gw-skip-cache")?.trim().toLowerCase() === "true";
  return skips || ttlSeconds === 0
    ? undefined
    : { ttlSeconds, ownKey: ownKey === "" ? undefined : ownKey };
}

function ttlOf(text: string | null): number {
  if (text === null) return ttlSecondsDefault;
  if (!/^\d+$/.test(text)) throw refusal("gw-cache-ttl", "must be a whole number of seconds");
  return Math.min(Number(text), ttlSecondsMax);
}

const refusal = (header: string, rule: string): GatewayError =>
  new GatewayError("invalid_request_error", `${header} ${rule}.`, { param: header });

/** What an answer depends on beside the request itself. */
export interface CacheScope {
  workspaceId: string;
  /** Canonical id of the model. */
  modelId: string;
  /** What the request says of providers, in its body and by header. */
  providers: unknown;
  /** The caller's own key, which stands for the input and the fields that are sent upstream. */
  ownKey: string | undefined;
}

/**
 * The key that an answer is kept under. It always has the workspace, the model, the dimensions and the
 * format in it, so that a key of the caller's own never yields vectors of another model.
 */
export function cacheKeyOf(
  { inputs, dimensions, format, rest, cohere }: EmbeddingRequest,
  { workspaceId, modelId, providers, ownKey }: CacheScope,
): string {
  const about = ownKey ?? [
    inputs,
    sorted(rest),
    providers,
    ...(cohere === undefined ? [] : [sorted(cohere.fields)]),
  ];
  const text = JSON.stringify([
    modelId,
    dimensions ?? null,
    cohere?.formats ?? format,
    typeof about === "string",
    about,
  ]);
  return `${workspaceId} ${new Bun.CryptoHasher("sha256").update(text).digest("base64url")}`;
}

/** Members in an order that does not depend on how they were written. */
const sorted = (fields: Fields): [string, unknown][] =>
  Object.entries(fields).sort(([left], [right]) => (left < right ? -1 : 1));
