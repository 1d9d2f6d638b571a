import {
  editMembers,
  editScanned,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import {
  reconcileFinish,
  coveringDelivered,
  type FinishReason,
  type GatewayFacts,
  type MeteredUsage,
} from "../../../canonical/response.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { sealWithProvenance } from "../../../canonical/reasoning.ts";
import {
  boundOrEstimated,
  type OriginalRequest,
  type ShownAnswer,
  type WholeAnswer,
} from "../../shared/passthrough.ts";
import { asGatewayFacts, gatewayFields } from "../../shared/gateway-facts.ts";
import { decodeFinish, outputText, unrepeatedFields } from "../answer-fields.ts";
import { encodeUsage, readResponseUsage, usageCost } from "../usage.ts";

/** Returns the output items of a response. */
export const itemsOf = ({ output }: ResponseFields): (ItemFields & JsonObject)[] =>
  Array.isArray(output)
    ? output.filter(
        (item): item is ItemFields & JsonObject => typeof item === "object" && item !== null,
      )
    : [];

/** Returns what is added to a response that has ended, beside the charge. */
export const endOf = (
  response: ResponseFields & { completed_at?: unknown },
  nowSeconds: number,
): {
  outputText: string;
  completedAtSeconds: number | undefined;
} => ({
  outputText: outputText(itemsOf(response)),
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
  const meter = new ResponseMeter();
  for (const item of itemsOf(response)) meter.addItem(item);
  meter.addResponse(response);
  const thought = meter.thought > 0 || (meter.usage?.usage.reasoningTokens ?? 0) > 0;
  return {
    upstreamId: typeof response.id === "string" ? response.id : null,
    finishReason: meter.finishReason,
    metered: meter.usage,
    outputCharacters: meter.outputCharacters,
    hasContent: meter.isAcceptable,
    spentOnReasoning: meter.visible === 0 && meter.finishReason === "length" && thought,
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
export interface ResponseFields {
  id?: unknown;
  status?: unknown;
  output?: unknown;
  usage?: unknown;
  service_tier?: unknown;
  incomplete_details?: { reason?: unknown } | null;
  error?: unknown;
}

/** The members of an output item that are read. */
export interface ItemFields {
  type?: unknown;
  content?: unknown;
  summary?: unknown;
  arguments?: unknown;
  input?: unknown;
  name?: unknown;
  encrypted_content?: unknown;
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

interface TextFields {
  text?: unknown;
  refusal?: unknown;
}

const partsLength = (value: unknown): number =>
  Array.isArray(value)
    ? value.reduce<number>(
        (sum, part: TextFields | null) => sum + lengthOf(part?.text) + lengthOf(part?.refusal),
        0,
      )
    : 0;

/** Returns whether an item is a call that the caller runs. */
export const isCall = (item: ItemFields | null | undefined): item is ItemFields =>
  item?.type === "function_call" || item?.type === "custom_tool_call";

/**
 * Returns the characters of one item. A tool that the provider ran itself always counts as content.
 */
function itemLength(item: ItemFields): { visible: number; thought: number } {
  switch (item.type) {
    case "message":
      return { visible: partsLength(item.content), thought: 0 };
    case "reasoning": {
      const sealed = lengthOf(item.encrypted_content) > 0 ? 1 : 0;
      return {
        visible: 0,
        thought: partsLength(item.summary) + partsLength(item.content) + sealed,
      };
    }
    case "function_call":
    case "custom_tool_call":
      return {
        visible: 1 + lengthOf(item.name) + lengthOf(item.arguments) + lengthOf(item.input),
        thought: 0,
      };
    default:
      return { visible: 1, thought: 0 };
  }
}

/**
 * Counts what a Responses answer contains: for estimates where no usage is reported, and to tell an
 * answer from silence.
 */
export class ResponseMeter {
  visible = 0;
  thought = 0;
  /** The finish reason, for which Responses has only a status. */
  finishReason: FinishReason | null = null;
  usage: MeteredUsage | undefined;
  private hasCalls = false;

  /** Adds a text delta. */
  addDelta(type: string, delta: unknown): void {
    if (type.startsWith("response.reasoning")) this.thought += lengthOf(delta);
    else this.visible += lengthOf(delta);
  }

  addItem(item: ItemFields): void {
    this.hasCalls ||= isCall(item);
    const { visible, thought } = itemLength(item);
    this.visible += visible;
    this.thought += thought;
  }

  /** Adds a response object, complete or in progress. */
  addResponse(response: ResponseFields): void {
    const { usage } = response;
    if (usage !== undefined && usage !== null)
      this.usage = readResponseUsage(response) ?? this.usage;
    const finish = decodeFinish(response as JsonObject);
    if (finish !== undefined) this.finishReason = reconcileFinish(finish, this.hasCalls).reason;
  }

  get outputCharacters(): number {
    return this.visible + this.thought;
  }

  /** Whether there is content, or an end without any that is meaningful to the client. */
  get isAcceptable(): boolean {
    const { finishReason, outputCharacters } = this;
    if (outputCharacters > 0) return true;
    return finishReason !== null && finishReason !== "stop" && finishReason !== "tool_calls";
  }

  /** Returns the provider's usage as far as it is plausible, or an estimate from the content. */
  metered({
    inputTokens,
    windowTokens,
  }: {
    inputTokens: number;
    windowTokens: number;
  }): MeteredUsage {
    const { usage, outputCharacters } = this;
    const isWhole = usage === undefined || this.finishReason !== null;
    return boundOrEstimated(isWhole ? usage : coveringDelivered(usage, outputCharacters), {
      inputTokens,
      windowTokens,
      outputCharacters,
    });
  }
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
