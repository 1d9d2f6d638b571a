import { brand } from "../../platform/lib/brand.ts";
import type { GatewayFacts } from "../canonical/gateway-facts.ts";
import type { JsonObject } from "../canonical/json.ts";
import { withoutUndefined } from "./without-undefined.ts";

/** Members that the gateway adds to an answer, or to the last chunk of a stream, beside `usage.cost`. */
export const gatewayFields = ({ requestedModel, fallback, metadata }: GatewayFacts = {}): JsonObject =>
  withoutUndefined<JsonObject>({ requested_model: requestedModel, fallback, [brand.metadataKey]: metadata });
