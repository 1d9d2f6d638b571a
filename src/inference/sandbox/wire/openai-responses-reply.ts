import { sseEvent } from "../dialect.ts";
import type { WireEvent } from "../play.ts";
import { firstChoice, type SimulatedReply } from "../reply.ts";
import { type ItemEvent, outputItems } from "./openai-responses-items.ts";
import type { ResponsesBody } from "./openai-responses-request.ts";

/** The body of a whole Responses answer. */
export function responseWhole(
  reply: SimulatedReply,
  request: ResponsesBody,
): Record<string, unknown> {
  const cutOff = firstChoice(reply).finish === "length";
  return {
    ...responseBody(reply, request),
    status: cutOff ? "incomplete" : "completed",
    completed_at: cutOff ? null : reply.createdAtSeconds,
    incomplete_details: cutOff ? { reason: "max_output_tokens" } : null,
    output: outputItems(reply, request.include ?? []).map((item) => item.whole),
    usage: usageBody(reply),
  };
}

/** The events of a streamed Responses answer, numbered from 0 without a gap. */
export function* responseEvents(
  reply: SimulatedReply,
  request: ResponsesBody,
): Generator<WireEvent> {
  let sequenceNumber = 0;
  for (const { type, fields, content } of itemEvents(reply, request)) {
    const data = { type, ...fields, sequence_number: sequenceNumber };
    sequenceNumber += 1;
    yield { wire: sseEvent(data, type), content: content ?? false };
  }
}

function* itemEvents(reply: SimulatedReply, request: ResponsesBody): Generator<ItemEvent> {
  const response = responseBody(reply, request);
  yield { type: "response.created", fields: { response } };
  yield { type: "response.in_progress", fields: { response } };
  const items = outputItems(reply, request.include ?? []);
  for (const [outputIndex, item] of items.entries()) yield* item.events(outputIndex);
  const whole = responseWhole(reply, request);
  yield { type: `response.${String(whole["status"])}`, fields: { response: whole } };
}

/** The response as it stands before it has any output; echoes what the request asked for. */
export function responseBody(
  reply: SimulatedReply,
  request: ResponsesBody,
): Record<string, unknown> {
  return {
    id: `resp_${reply.seed}`,
    object: "response",
    created_at: reply.createdAtSeconds,
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: reply.model,
    output: [],
    usage: null,
    previous_response_id: null,
    ...echoedFields(request),
  };
}

const echoedDefaults: Readonly<Record<string, unknown>> = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: false,
  background: false,
  temperature: 1,
  top_p: 1,
  top_logprobs: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  truncation: "disabled",
  user: null,
};

const echoedFields = (request: ResponsesBody): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(echoedDefaults).map(([name, fallback]) => [name, request[name] ?? fallback]),
  );

function usageBody({ usage }: SimulatedReply): unknown {
  if (usage === undefined) return null;
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
