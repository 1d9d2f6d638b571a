import type { Annotation } from "../../canonical/message.ts";
import type { Finish, GatewayFacts, MeteredUsage } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  openProvenance,
  sealWithProvenance,
  type Provenance,
  type ReasoningPart,
} from "../../canonical/reasoning.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { ResponseContext } from "../dialect.ts";
import { cutCallId } from "../shared/tools.ts";
import type { RanSearch } from "../shared/extras/web-search.ts";
import { addGatewayFields } from "../shared/gateway-facts.ts";
import { encodeUsage } from "./usage.ts";

/** The most characters of a `call_id` at OpenAI. */
const callIdLengthMax = 64;

/** Returns a call's id as the upstream takes it. */
export const takenCallId = (id: string, { callIds }: DialectDeviations): string =>
  callIds === "openai" ? cutCallId(id, callIdLengthMax) : id;

/** The state of a response that has ended. */
export interface Ending {
  status: "completed" | "incomplete" | "failed";
  incomplete_details: JsonObject | null;
  error: JsonObject | null;
}

const whole: Ending = { status: "completed", incomplete_details: null, error: null };
const cut = (reason: string): Ending => ({
  status: "incomplete",
  incomplete_details: { reason },
  error: null,
});

/**
 * Encodes the end of an answer for a Responses client. A refusal is a whole answer where its words
 * are in the message, and a cut one otherwise.
 */
export function encodeFinish(finish: Finish): Ending {
  switch (finish.reason) {
    case "length":
      return cut("max_output_tokens");
    case "content_filter":
      return cut("content_filter");
    case "refusal":
      return finish.explanation === undefined ? cut("content_filter") : whole;
    case "error":
      return {
        status: "failed",
        incomplete_details: null,
        error: {
          code: "server_error",
          message: finish.explanation ?? "The provider broke off the answer.",
        },
      };
    default:
      return whole;
  }
}

/** Returns the end that an upstream reported; undefined while it reports none. */
export function decodeFinish(response: JsonObject): Finish | undefined {
  if (response.status === "completed") return { reason: "stop" };
  if (response.status !== "incomplete") return undefined;
  const reason = asString(asObject(response.incomplete_details)?.reason);
  return { reason: reason === "content_filter" ? "content_filter" : "length" };
}

/** Decodes a citation of Responses: `url_citation`, or one that is kept as it is. */
export function decodeAnnotation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const url = asString(fields.url);
  if (fields.type !== "url_citation" || url === undefined)
    return { type: "opaque", dialect: "openai-responses", value: fields };
  return withoutUndefined<Extract<Annotation, { type: "url" }>>({
    type: "url",
    url,
    title: asString(fields.title),
    startIndex: asNumber(fields.start_index),
    endIndex: asNumber(fields.end_index),
    citedText: asString(fields.content),
  });
}

/** Decodes the citations of one text; undefined when there are none. */
export function decodeAnnotations(value: unknown): Annotation[] | undefined {
  const annotations = (asArray(value) ?? []).flatMap((entry) => decodeAnnotation(entry) ?? []);
  return annotations.length === 0 ? undefined : annotations;
}

/**
 * Encodes a citation as Responses has it; none for kinds that it does not have. One without a place
 * of its own is about the whole text: clients refuse answers in which one has no place or title
 * (@ai-sdk/openai 4.0.118, @openrouter/sdk 1.3.19).
 */
export function encodeAnnotation(annotation: Annotation, text: string): JsonObject[] {
  if (annotation.type === "opaque")
    return annotation.dialect === "openai-responses" ? [annotation.value] : [];
  if (annotation.type !== "url") return [];
  const { url, title = url, startIndex = 0, endIndex = text.length, citedText } = annotation;
  return [
    withoutUndefined<JsonObject>({
      type: "url_citation",
      url,
      title,
      start_index: startIndex,
      end_index: endIndex,
      content: citedText,
    }),
  ];
}

/** Reads a seal: from a client with the gateway's mark, from an upstream as that upstream's own. */
type SealReader = (sealed: string) => { seal: string; provenance?: Provenance };

/** Returns a reader of an upstream's seals, which in any form are its own. */
export const sealsOf =
  (providerId: string | undefined): SealReader =>
  (sealed) => ({ seal: sealed, ...(providerId !== undefined && { provenance: { providerId } }) });

/** The beginning of a seal that contains more than ciphertext: what Responses has no fields for. */
const packMark = "th1.";

/**
 * The content of such a seal. A signature covers its text, so the text travels with it and clients
 * cannot change it.
 */
interface PackedThought {
  text?: string;
  summary?: readonly string[];
  signature?: string;
  encrypted?: string;
  format?: string;
  /** The call that the signature belongs to, where it is not a reasoning block's (Gemini). */
  callId?: string;
}

/** A call's signature, which is sent in an item in front of the call. */
export interface CallSignature {
  callId: string;
  signature: string;
  provenance?: Provenance;
}

const pack = (packed: PackedThought): string =>
  packMark + Buffer.from(JSON.stringify(packed)).toString("base64url");

function unpack(seal: string): PackedThought | undefined {
  if (!seal.startsWith(packMark)) return undefined;
  try {
    return asObject(
      JSON.parse(Buffer.from(seal.slice(packMark.length), "base64url").toString("utf8")),
    ) as PackedThought | undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns `encrypted_content` of a reasoning block for a client, marked with its maker; undefined
 * when it is not sealed.
 */
export function sealedContent(part: ReasoningPart): string | undefined {
  const { text, summary, signature, encrypted, format, provenance } = part;
  if (signature !== undefined || (encrypted !== undefined && format !== undefined)) {
    return sealWithProvenance(
      pack({ text, summary, signature, encrypted, format } as PackedThought),
      provenance,
    );
  }
  return encrypted === undefined ? undefined : sealWithProvenance(encrypted, provenance);
}

/** Returns the item in front of a call that keeps the call's signature for the next turn. */
export const signatureItem = (id: string, call: CallSignature): JsonObject => ({
  id,
  type: "reasoning",
  summary: [],
  encrypted_content: sealWithProvenance(
    pack({ callId: call.callId, signature: call.signature }),
    call.provenance,
  ),
});

const texts = (value: unknown): string[] =>
  (asArray(value) ?? []).flatMap((entry) => asString(asObject(entry)?.text) ?? []);

/**
 * Decodes a reasoning item as a reasoning block, or as the signature of the call that follows it.
 * Packed content takes precedence over what is shown, since only the former is what its maker
 * signed.
 */
export function decodeReasoningItem(
  item: JsonObject,
  readSeal: SealReader = openProvenance,
): ReasoningPart | CallSignature {
  const sealed = asString(item.encrypted_content);
  const { seal, provenance } = sealed ? readSeal(sealed) : {};
  const packed = seal === undefined ? undefined : unpack(seal);
  if (packed?.callId !== undefined && packed.signature !== undefined) {
    return {
      callId: packed.callId,
      signature: packed.signature,
      ...(provenance && { provenance }),
    };
  }
  const summary = texts(item.summary);
  const content = texts(item.content).join("");
  const shown = packed ?? {
    ...(content !== "" && { text: content }),
    ...(summary.length > 0 && { summary }),
    ...(seal && { encrypted: seal }),
  };
  return withoutUndefined<ReasoningPart>({
    type: "reasoning",
    ...shown,
    provenance,
    id: asString(item.id) || undefined,
  });
}

/** Returns the item of a search that a provider of another dialect has run, without its id. */
export const searchItem = ({ queries, urls, failed }: RanSearch): JsonObject => ({
  type: "web_search_call",
  status: failed ? "failed" : "completed",
  action: {
    type: "search",
    query: queries[0] ?? "",
    queries,
    sources: urls.map((url) => ({ type: "url", url })),
  },
});

/** Encodes summaries. */
export const summaryParts = (summaries: readonly string[]): JsonObject[] =>
  summaries.map((text) => ({ type: "summary_text", text }));

/** The parts of a response that do not repeat its request. */
interface RecordFacts {
  id: string;
  model: string;
  createdAtSeconds: number;
  /** Absent while the response is in progress. */
  ending?: Ending | undefined;
  /** The time when it was completed, if it was. */
  completedAtSeconds?: number;
  output: readonly JsonObject[];
  usage?: MeteredUsage | undefined;
  serviceTier?: string | undefined;
  gateway?: GatewayFacts | undefined;
}

const noMetadata: JsonObject = {};
const noReasoning: JsonObject = { effort: null, summary: null };
const plainText: JsonObject = { format: { type: "text" } };

/**
 * Returns the whole record of a response. Open Responses (2026-07) requires every key, and numbers
 * where the request had none.
 */
export function responseRecord(
  facts: RecordFacts,
  { requestBody = {} }: ResponseContext,
): JsonObject {
  const { ending, output, usage, gateway, serviceTier } = facts;
  const request = requestBody as JsonObject;
  const record: Record<string, JsonValue> = {
    id: facts.id,
    object: "response",
    created_at: facts.createdAtSeconds,
    completed_at: ending?.status === "completed" ? (facts.completedAtSeconds ?? null) : null,
    status: ending?.status ?? "in_progress",
    error: ending?.error ?? null,
    incomplete_details: ending?.incomplete_details ?? null,
    model: facts.model,
    output,
    output_text: outputText(output),
    usage: usage === undefined ? null : encodeUsage(usage, gateway),
    // Every request field that a response repeats, with its value where the request has none.
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    safety_identifier: request.safety_identifier ?? null,
    service_tier: serviceTier ?? request.service_tier ?? "default",
    store: request.store ?? true,
    background: request.background ?? false,
    temperature: request.temperature ?? 1,
    top_p: request.top_p ?? 1,
    top_logprobs: request.top_logprobs ?? 0,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    tool_choice: request.tool_choice ?? "auto",
    truncation: request.truncation ?? "disabled",
    user: request.user ?? null,
    metadata: request.metadata ?? noMetadata,
    reasoning: completed(noReasoning, request.reasoning),
    text: completed(plainText, request.text),
    tools: (asArray(request.tools) ?? []).map(echoedTool),
  };
  addGatewayFields(record, gateway);
  return record;
}

/** The request fields that a response repeats, apart from those that the gateway always sets. */
const repeatedNames = [
  "instructions",
  "metadata",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "max_output_tokens",
  "max_tool_calls",
  "reasoning",
  "text",
  "temperature",
  "top_p",
  "top_logprobs",
  "presence_penalty",
  "frequency_penalty",
  "truncation",
] as const;

/**
 * Returns the JSON text of the request fields that a response does not repeat, by name: the request
 * sets them, and the response has no such member, or an empty one. `valueIn` returns the text of a
 * member of the response.
 */
export function unrepeatedFields(
  request: Readonly<Record<string, unknown>>,
  valueIn: (name: string) => string | undefined,
): [name: string, value: string][] {
  return repeatedNames.flatMap((name): [string, string][] => {
    const value = (request as JsonObject)[name] ?? null;
    if (value === null || !isEmptyText(valueIn(name))) return [];
    return [[name, JSON.stringify(repeatedValue(name, value))]];
  });
}

/** Matches the JSON text of nothing, an empty object or an empty array. */
const emptyText = /^(?:null|\{\s*\}|\[\s*\])$/;

const isEmptyText = (text: string | undefined): boolean =>
  text === undefined || (text.length < 8 && emptyText.test(text));

/** Returns the value of a request field in the form in which a response repeats it. */
function repeatedValue(name: (typeof repeatedNames)[number], value: JsonValue): JsonValue {
  if (name === "tools") return (asArray(value) ?? []).map(echoedTool);
  if (name === "reasoning") return completed(noReasoning, value);
  return name === "text" ? completed(plainText, value) : value;
}

/** Returns an object of the request with the members that it omitted. */
function completed(defaults: JsonObject, value: JsonValue | undefined): JsonObject {
  const own = asObject(value);
  return own === undefined ? defaults : { ...defaults, ...own };
}

/**
 * Returns a tool as the record repeats it: functions have all their keys, and MCP servers not what
 * gives access to them.
 */
function echoedTool(value: JsonValue): JsonValue {
  const tool = asObject(value);
  if (tool?.type === "mcp") {
    const { authorization: _, headers: __, ...shown } = tool;
    return shown;
  }
  return tool?.type === "function"
    ? { description: null, parameters: null, strict: null, ...tool }
    : value;
}

/** Returns the text of all messages, joined as OpenAI's own clients do. */
export function outputText(output: readonly JsonObject[]): string {
  let text = "";
  for (const item of output) {
    for (const value of (item.type === "message" ? asArray(item.content) : undefined) ?? []) {
      const part = asObject(value);
      if (part?.type === "output_text") text += asString(part.text) ?? "";
    }
  }
  return text;
}
