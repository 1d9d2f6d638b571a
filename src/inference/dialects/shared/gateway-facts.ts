import { brand, brandHeader } from "../../../platform/kernel/brand.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import type { GatewayFacts, MeteredUsage, ModelFallback } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { OriginalRequest } from "./exchange.ts";
import type { GatewayRequest, PromptCaching } from "../../canonical/request.ts";
import { type RequestFields, withoutUndefined } from "./wire-fields.ts";

/** Returns what the gateway adds to a translated answer. */
export function asGatewayFacts({
  chargedNano,
  isByok,
  metered,
  fallback,
  metadataText,
}: {
  chargedNano: bigint;
  isByok?: boolean | undefined;
  metered: MeteredUsage;
  fallback: ModelFallback | undefined;
  /**
   * The JSON text of the metadata object; undefined where the dialect's whole answers have none.
   */
  metadataText: string | undefined;
}): GatewayFacts {
  return {
    costUsd: usdFromNano(chargedNano),
    ...(isByok === true && { isByok }),
    ...(metered.providerCostUsd !== undefined && { upstreamCostUsd: metered.providerCostUsd }),
    ...(fallback !== undefined && {
      requestedModel: fallback.requestedModel,
      fallback: fallbackBlock(fallback),
    }),
    ...(metadataText !== undefined && { metadata: JSON.parse(metadataText) as JsonObject }),
  };
}

/** Returns the `fallback` block of an answer (contract: "Model fallback on a request"). */
export const fallbackBlock = ({ reason, attempts }: ModelFallback): JsonObject => ({
  used: true,
  reason,
  attempts: attempts.map((attempt) => ({
    model: attempt.model,
    provider: attempt.provider,
    status: attempt.status,
    outcome: attempt.outcome,
    reason: attempt.reason,
  })),
});

/** Returns the JSON members that report a model fallback to a client. */
export const fallbackMembers = (fallback: ModelFallback): [string, string][] => [
  ["requested_model", JSON.stringify(fallback.requestedModel)],
  ["fallback", JSON.stringify(fallbackBlock(fallback))],
];

/**
 * Returns the members that the gateway adds to an answer, or to the last chunk of a stream, beside
 * `usage.cost`.
 */
export function gatewayFields(gateway: GatewayFacts | undefined): JsonObject {
  const members = {};
  addGatewayFields(members, gateway);
  return members;
}

/** Adds those members to an answer. */
export function addGatewayFields(
  members: Record<string, JsonValue | undefined>,
  gateway: GatewayFacts | undefined,
): void {
  if (gateway === undefined) return;
  const { requestedModel, fallback, metadata } = gateway;
  if (requestedModel !== undefined) members.requested_model = requestedModel;
  if (fallback !== undefined) members.fallback = fallback;
  if (metadata !== undefined) members[brand.metadataKey] = metadata;
}

/**
 * The request header that says where the metadata is placed: `inline` in the last event, or `event`
 * for one of its own.
 */
const metadataFrameHeader = brandHeader("Metadata-Frame").toLowerCase();

/** The request header of OpenAI's own stream helper. */
const helperHeader = "x-stainless-helper-method";

/** Request headers that say where the metadata of a Responses stream is placed. */
export const metadataPlaceHeaders = [metadataFrameHeader, helperHeader] as const;

/**
 * Returns whether a Responses stream carries its metadata within its terminal event instead of in
 * an event of its own: for clients that fail on event types which OpenAI does not have, such as
 * `openai.responses.stream()` and validators, which say so by header (decisions 0017 and 0051). A
 * client that requests the event by name gets it.
 */
export const wantsMetadataInLastEvent = ({
  dialectHeaders,
}: Pick<OriginalRequest, "dialectHeaders">): boolean =>
  dialectHeaders[metadataFrameHeader] === "inline" ||
  (dialectHeaders[metadataFrameHeader] !== "event" && dialectHeaders[helperHeader] === "stream");

/**
 * Decodes what a request asks of the gateway itself; the fields are the same in every client
 * dialect.
 */
export const decodeGateway = (body: RequestFields): GatewayRequest =>
  withoutUndefined<GatewayRequest>({
    models: body.strings("models"),
    provider: body.objectField("provider"),
    sessionId: body.string("session_id"),
    trace: body.objectField("trace"),
    requireParams: body.strings("require_params"),
    minContext: body.number("min_context"),
  });

/** Decodes OpenAI's fields for caching the whole prompt, which chat and Responses share. */
export const decodePromptCaching = (body: RequestFields): PromptCaching =>
  withoutUndefined<PromptCaching>({
    key: body.string("prompt_cache_key"),
    retention: body.string("prompt_cache_retention"),
    options: body.objectField("prompt_cache_options"),
  });
