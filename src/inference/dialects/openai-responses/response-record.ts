import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { ResponseContext } from "../dialect.ts";
import { gatewayFields } from "../gateway-fields.ts";
import { asArray, asObject, asString } from "../request-fields.ts";
import { encodeUsage } from "./encode-usage.ts";
import type { Ending } from "./finish-fields.ts";

/** What of a response is not an echo of its request. */
export interface RecordFacts {
  id: string;
  model: string;
  createdAtSeconds: number;
  /** Absent while the response is under way. */
  ending?: Ending & { completedAtSeconds: number };
  output: readonly JsonObject[];
  usage?: MeteredUsage;
  serviceTier?: string;
  gateway?: GatewayFacts;
}

/** Every request field that a response repeats, with what stands there when the request has none. */
const echoed: Readonly<Record<string, JsonValue>> = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default",
  store: true,
  background: false,
  temperature: 1,
  top_p: 1,
  top_logprobs: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  tool_choice: "auto",
  truncation: "disabled",
  user: null,
  metadata: {},
};

/**
 * The whole record of a response: Open Responses (2026-07) wants every key, and numbers where the
 * request was silent.
 */
export function responseRecord(facts: RecordFacts, { requestBody = {} }: ResponseContext): JsonObject {
  const { ending, output, usage, gateway } = facts;
  const request = requestBody as JsonObject;
  return {
    id: facts.id,
    object: "response",
    created_at: facts.createdAtSeconds,
    completed_at: ending?.status === "completed" ? ending.completedAtSeconds : null,
    status: ending?.status ?? "in_progress",
    error: ending?.error ?? null,
    incomplete_details: ending?.incomplete_details ?? null,
    model: facts.model,
    output,
    output_text: outputText(output),
    usage: usage === undefined ? null : encodeUsage(usage, gateway),
    ...Object.fromEntries(Object.entries(echoed).map(([key, absent]) => [key, request[key] ?? absent])),
    ...(facts.serviceTier !== undefined && { service_tier: facts.serviceTier }),
    reasoning: { effort: null, summary: null, ...asObject(request.reasoning) },
    text: { format: { type: "text" }, ...asObject(request.text) },
    tools: (asArray(request.tools) ?? []).map(echoedTool),
    ...gatewayFields(gateway),
  };
}

/** Functions are shown with all their keys. */
function echoedTool(value: JsonValue): JsonValue {
  const tool = asObject(value);
  return tool?.type === "function" ? { description: null, parameters: null, strict: null, ...tool } : value;
}

/** The text of all messages, as OpenAI's own clients put it together. */
export const outputText = (output: readonly JsonObject[]): string => output
  .flatMap((item) => (item.type === "message" ? asArray(item.content) ?? [] : []))
  .map((part) => (asObject(part)?.type === "output_text" ? asString(asObject(part)?.text) ?? "" : ""))
  .join("");
