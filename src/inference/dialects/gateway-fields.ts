import { brand } from "../../platform/lib/brand.ts";
import type { GatewayFacts } from "../canonical/gateway-facts.ts";
import type { JsonObject, JsonValue } from "../canonical/json.ts";

/** Members that the gateway adds to an answer, or to the last chunk of a stream, beside `usage.cost`. */
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
