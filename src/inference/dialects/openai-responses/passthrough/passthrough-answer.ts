import {
  editMembers,
  editScanned,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import { answerFacts } from "../../../canonical/answer-meter.ts";
import type { GatewayFacts, MeteredUsage } from "../../../canonical/response.ts";
import { sealWithProvenance } from "../../../canonical/reasoning.ts";
import type { OriginalRequest, ShownAnswer, WholeAnswer } from "../../shared/exchange.ts";
import { asGatewayFacts, gatewayFields } from "../../shared/gateway-facts.ts";
import { objectsIn } from "../../shared/wire-fields.ts";
import { outputText, unrepeatedFields } from "../answer-fields.ts";
import { decodeResponse } from "../decode-response.ts";
import { encodeUsage, usageCost } from "../usage.ts";

/** Returns what is added to a response that has ended, beside the charge. */
export const endOf = (
  response: ResponseFields & { completed_at?: unknown },
  nowSeconds: number,
): {
  outputText: string;
  completedAtSeconds: number | undefined;
} => ({
  outputText: outputText(objectsIn(response.output)),
  completedAtSeconds:
    response.status === "completed" && typeof response.completed_at !== "number"
      ? nowSeconds
      : undefined,
});

/**
 * Reads what settlement needs from a response; undefined when the text is none, or has not ended
 * well.
 */
export function readResponse(
  text: string,
  response: ResponseFields,
  { request, providerId }: { request: OriginalRequest; providerId: string },
): WholeAnswer | undefined {
  const { status, output } = response;
  if (!Array.isArray(output) || (status !== "completed" && status !== "incomplete"))
    return undefined;
  return {
    ...answerFacts(decodeResponse(response)),
    render: (shown) => renderResponse(text, response, { shown, request, providerId }),
  };
}

function renderResponse(
  text: string,
  response: ResponseFields,
  {
    shown,
    request,
    providerId,
  }: { shown: ShownAnswer; request: OriginalRequest; providerId: string },
): string {
  const { id, model, metered } = shown;
  const gateway = asGatewayFacts({ ...shown, metadataText: shown.metadataText() });
  return responseText(withArguments(text, response.output), {
    id,
    model,
    providerId,
    requestBody: request.body,
    end: { metered, gateway, ...endOf(response, request.nowSeconds()) },
  });
}

/** The members of an output item that are read. */
interface ItemFields {
  type?: unknown;
  arguments?: unknown;
}

/** Returns the text with `{}` for empty arguments of function calls, since clients parse them. */
function withArguments(text: string, output: unknown): string {
  const lacksArguments = (item: ItemFields | null): boolean =>
    item?.type === "function_call" && item.arguments === "";
  if (!Array.isArray(output) || !output.some(lacksArguments)) return text;
  const items = (output as (ItemFields | null)[]).map((item) =>
    lacksArguments(item) ? { ...item, arguments: "{}" } : item,
  );
  return editMembers(text, new Map([["output", JSON.stringify(items)]]));
}

/** The members of a response that the gateway reads. */
interface ResponseFields {
  status?: unknown;
  output?: unknown;
}

/** The edits of a response's text. */
export interface ResponseEdits {
  id: string;
  model: string;
  /** The slug of the provider that answered. */
  providerId: string;
  /** The request as its client wrote it, since the gateway answers for its storage fields. */
  requestBody: Readonly<Record<string, unknown>>;
  /** The end of the response; absent while it is in progress. */
  end?: {
    metered: MeteredUsage;
    gateway: GatewayFacts;
    outputText: string | undefined;
    completedAtSeconds: number | undefined;
  };
}

/**
 * Returns a response object as the client gets it: the upstream's text with the gateway's own
 * members, and with the request's fields that the upstream does not repeat.
 */
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
  const valueIn = (name: string): string | undefined => {
    const member = members.findLast(({ key }) => key === name);
    return member && text.slice(member.valueStart, member.valueEnd);
  };
  for (const [name, value] of unrepeatedFields(requestBody, valueIn)) edits.set(name, value);
  // The provider repeats the ids that it was sent, which are scoped by workspace.
  for (const name of ["user", "safety_identifier", "prompt_cache_key"])
    if (typeof requestBody[name] === "string") edits.set(name, JSON.stringify(requestBody[name]));
  if (end !== undefined) {
    edits.set("usage", pricedUsage(valueIn("usage"), end));
    if (end.outputText !== undefined) edits.set("output_text", JSON.stringify(end.outputText));
    if (end.completedAtSeconds !== undefined)
      edits.set("completed_at", String(end.completedAtSeconds));
    for (const [key, value] of Object.entries(gatewayFields(end.gateway)))
      edits.set(key, JSON.stringify(value));
  }
  return withSealedProvenance(editScanned(text, members, edits), providerId);
}

const countNames = ["input_tokens", "output_tokens", "total_tokens"];

/**
 * Returns the provider's own usage with the charge, or the gateway's where the provider's cannot be
 * shown.
 */
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

/**
 * Matches members with sealed content. A quote cannot occur unescaped within a string of JSON text,
 * so this finds names of members alone. Empty values are no seals.
 */
const sealedMember = /("encrypted_content"\s*:\s*")(?!")/g;

/**
 * Returns the JSON text of an answer whose sealed reasoning names its maker, so that only the maker
 * gets it back.
 */
export function withSealedProvenance(text: string, providerId: string): string {
  if (!text.includes('"encrypted_content"')) return text;
  const mark = sealWithProvenance("", { providerId });
  return text.replace(sealedMember, (member) => member + mark);
}
