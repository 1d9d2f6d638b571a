import { editScanned, scanMembers } from "../../../platform/lib/json-members.ts";
import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { gatewayFields } from "../../dialects/gateway-fields.ts";
import { encodeUsage, usageCost } from "../../dialects/openai-responses/encode-usage.ts";
import { withSealedProvenance } from "./sealed-text.ts";

/** What a response's text is edited with. */
export interface ResponseEdits {
  id: string;
  model: string;
  /** Slug of the provider that answered. */
  providerId: string;
  /** The request as its client wrote it: what was asked of storage is the gateway's to answer. */
  requestBody: Readonly<Record<string, unknown>>;
  /** How the response ended; absent while it is under way. */
  end?: {
    metered: MeteredUsage;
    gateway: GatewayFacts;
    outputText: string | undefined;
    completedAtSeconds: number | undefined;
  };
}

/** Response objects as the client gets them: the upstream's text with what is the gateway's to say. */
export function responseText(
  text: string,
  { id, model, providerId, requestBody, end }: ResponseEdits,
): string {
  const members = scanMembers(text);
  const edits = new Map<string, string | undefined>([
    ["id", JSON.stringify(id)],
    ["model", JSON.stringify(model)],
    ["store", JSON.stringify(requestBody["store"] ?? true)],
    ["background", JSON.stringify(requestBody["background"] ?? false)],
    ["previous_response_id", JSON.stringify(requestBody["previous_response_id"] ?? null)],
  ]);
  if (end !== undefined) {
    const usage = members.findLast(({ key }) => key === "usage");
    const original = usage === undefined ? undefined : text.slice(usage.valueStart, usage.valueEnd);
    edits.set("usage", pricedUsage(original, end));
    if (end.outputText !== undefined) edits.set("output_text", JSON.stringify(end.outputText));
    if (end.completedAtSeconds !== undefined)
      edits.set("completed_at", String(end.completedAtSeconds));
    for (const [key, value] of Object.entries(gatewayFields(end.gateway)))
      edits.set(key, JSON.stringify(value));
  }
  return withSealedProvenance(editScanned(text, members, edits), providerId);
}

const countNames = ["input_tokens", "output_tokens", "total_tokens"];

/** The provider's own usage with the charge, or ours where the provider's cannot be shown. */
function pricedUsage(
  original: string | undefined,
  { metered, gateway }: { metered: MeteredUsage; gateway: GatewayFacts },
): string {
  const usable =
    original !== undefined &&
    original.startsWith("{") &&
    !metered.clamped &&
    !metered.estimated &&
    countNames.every((name) => original.includes(`"${name}"`));
  if (!usable) return JSON.stringify(encodeUsage(metered, gateway));
  const edits = new Map<string, string | undefined>([["cost_details", undefined]]);
  for (const [key, value] of Object.entries(usageCost(gateway)))
    edits.set(key, JSON.stringify(value));
  return editScanned(original, scanMembers(original), edits);
}
