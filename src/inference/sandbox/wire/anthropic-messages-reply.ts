import { sseEvent } from "../dialect.ts";
import type { WireEvent } from "../play.ts";
import {
  firstChoice,
  type SimulatedCall,
  type SimulatedChoice,
  type SimulatedReply,
  type SimulatedUsage,
} from "../reply.ts";

/** What a Messages request says about the shape of its answer. */
export interface MessageReplyOptions {
  /** Thinking comes as a signature without its text. */
  omitThinking: boolean;
}

/** One content block, as it opens, as it grows and as it is in the end. */
interface Block {
  opening: Record<string, unknown>;
  deltas: Record<string, unknown>[];
  /** The last delta, which carries no token. */
  closing?: Record<string, unknown>;
  whole: Record<string, unknown>;
}

/** The body of a whole Messages answer. */
export function messageWhole(reply: SimulatedReply, options: MessageReplyOptions): unknown {
  const choice = firstChoice(reply);
  return {
    ...envelope(reply),
    content: blocksOf(reply, choice, options).map((block) => block.whole),
    ...stopFields(choice),
    ...(reply.usage ? { usage: usageBody(reply.usage) } : {}),
  };
}

/** The events of a streamed Messages answer. */
export function* messageEvents(
  reply: SimulatedReply,
  options: MessageReplyOptions,
): Generator<WireEvent> {
  const choice = firstChoice(reply);
  const opening = reply.usage
    ? { usage: usageBody({ ...reply.usage, outputTokens: 0, reasoningTokens: 0 }) }
    : {};
  const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
  yield event("message_start", {
    message: { ...envelope(reply), content: [], ...stop, ...opening },
  });
  yield event("ping", {});
  for (const [index, block] of blocksOf(reply, choice, options).entries())
    yield* blockEvents(index, block);
  const usage = reply.usage ? { usage: usageBody(reply.usage) } : {};
  yield event("message_delta", { delta: stopFields(choice), ...usage });
  yield event("message_stop", {});
}

function* blockEvents(index: number, block: Block): Generator<WireEvent> {
  yield event("content_block_start", { index, content_block: block.opening });
  for (const delta of block.deltas)
    yield { ...event("content_block_delta", { index, delta }), content: true };
  if (block.closing) yield event("content_block_delta", { index, delta: block.closing });
  yield event("content_block_stop", { index });
}

const event = (type: string, fields: Record<string, unknown>): WireEvent => ({
  wire: sseEvent({ type, ...fields }, type),
  content: false,
});

const envelope = (reply: SimulatedReply): Record<string, unknown> => ({
  id: `msg_${reply.seed}`,
  type: "message",
  role: "assistant",
  model: reply.model,
  container: null,
});

function stopFields({ finish, stopSequence }: SimulatedChoice): Record<string, unknown> {
  const reasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" } as const;
  return {
    stop_reason: stopSequence === undefined ? reasons[finish] : "stop_sequence",
    stop_sequence: stopSequence ?? null,
    stop_details: null,
  };
}

function blocksOf(
  reply: SimulatedReply,
  choice: SimulatedChoice,
  options: MessageReplyOptions,
): Block[] {
  return [
    ...(choice.reasoning.length > 0 ? [thinkingBlock(reply, choice.reasoning, options)] : []),
    ...(choice.text.length > 0 ? [textBlock(choice.text)] : []),
    ...choice.calls.map(toolBlock),
  ];
}

function thinkingBlock(
  reply: SimulatedReply,
  tokens: string[],
  { omitThinking }: MessageReplyOptions,
): Block {
  const signature = Buffer.from(`sandbox thinking ${reply.seed}`).toString("base64");
  const shown = omitThinking ? [] : tokens;
  return {
    opening: { type: "thinking", thinking: "", signature: "" },
    deltas: shown.map((token) => ({ type: "thinking_delta", thinking: token })),
    closing: { type: "signature_delta", signature },
    whole: { type: "thinking", thinking: shown.join(""), signature },
  };
}

const textBlock = (tokens: string[]): Block => ({
  opening: { type: "text", text: "", citations: null },
  deltas: tokens.map((token) => ({ type: "text_delta", text: token })),
  whole: { type: "text", text: tokens.join(""), citations: null },
});

function toolBlock(call: SimulatedCall): Block {
  const head = { type: "tool_use", id: call.id.replace("call_", "toolu_"), name: call.name };
  return {
    opening: { ...head, input: {} },
    deltas: call.argumentTokens.map((token) => ({ type: "input_json_delta", partial_json: token })),
    whole: { ...head, input: parsedInput(call.argumentTokens.join("")) },
  };
}

/**
 * Arguments that were cut off by the token limit are no JSON; a whole answer then has what it can
 * have.
 */
function parsedInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Anthropic's input count leaves out what was read from and written to the cache. */
const usageBody = (usage: SimulatedUsage): Record<string, unknown> => ({
  input_tokens: usage.inputTokens - usage.cachedTokens - usage.cacheWriteTokens,
  cache_creation_input_tokens: usage.cacheWriteTokens,
  cache_read_input_tokens: usage.cachedTokens,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.cacheWriteTokens,
    ephemeral_1h_input_tokens: 0,
  },
  output_tokens: usage.outputTokens,
  output_tokens_details: { thinking_tokens: usage.reasoningTokens },
  service_tier: "standard",
});
