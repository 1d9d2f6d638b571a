import type { GatewayFacts } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { ResponseContext } from "../dialect.ts";
import { addGatewayFields } from "../gateway-facts.ts";
import { asArray, asObject, asString } from "../wire-fields.ts";
import { encodeUsage } from "./usage.ts";
import type { Ending } from "./answer-fields.ts";

/** The parts of a response that do not repeat its request. */
export interface RecordFacts {
  id: string;
  model: string;
  createdAtSeconds: number;
  /** Absent while the response is under way. */
  ending?: Ending | undefined;
  /** When it was completed, where it was. */
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
 * The whole record of a response: Open Responses (2026-07) wants every key, and numbers where the
 * request was silent.
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
    // Every request field that a response repeats, with what stands there when the request has
    // none.
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

/** An object of the request with the members that it left out. */
function completed(defaults: JsonObject, value: JsonValue | undefined): JsonObject {
  const own = asObject(value);
  return own === undefined ? defaults : { ...defaults, ...own };
}

/** Functions are shown with all their keys. */
function echoedTool(value: JsonValue): JsonValue {
  const tool = asObject(value);
  return tool?.type === "function"
    ? { description: null, parameters: null, strict: null, ...tool }
    : value;
}

/** The text of all messages, as OpenAI's own clients put it together. */
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
