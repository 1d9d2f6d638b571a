import { sseEvent } from "../dialect.ts";
import type { WireEvent } from "../play.ts";
import type { SimulatedCall, SimulatedChoice, SimulatedReply } from "../reply.ts";

/** What a chat request says about the shape of its answer. */
export interface ChatReplyOptions {
  /** Alternatives beside each token's log probability; undefined when none was asked for. */
  topLogprobs: number | undefined;
  /** Whether a stream ends with a usage chunk. */
  includeUsage: boolean;
}

interface Delta {
  delta: Record<string, unknown>;
  /** True when it carries a token. */
  content: boolean;
  /** The token, when it is one of the text. */
  token?: string;
  finish?: SimulatedChoice["finish"];
}

/** The body of a whole chat answer. */
export function chatWhole(reply: SimulatedReply, options: ChatReplyOptions): unknown {
  return {
    ...envelope(reply, "chat.completion"),
    choices: reply.choices.map((choice, index) => ({
      index,
      message: chatMessage(choice),
      logprobs: logprobsOf(choice.text, options.topLogprobs),
      finish_reason: choice.finish,
    })),
    ...usageField(reply),
  };
}

/** The events of a streamed chat answer; the choices take turns. */
export function* chatEvents(
  reply: SimulatedReply,
  options: ChatReplyOptions,
): Generator<WireEvent> {
  const usage = options.includeUsage ? { usage: null } : {};
  const open = reply.choices.map((choice, index) => ({ index, deltas: choiceDeltas(choice) }));
  while (open.length > 0) {
    for (const line of [...open]) {
      const next = line.deltas.next();
      if (next.done) open.splice(open.indexOf(line), 1);
      else {
        const choices = [chunkChoice(line.index, next.value, options)];
        yield chunkEvent(reply, { choices, ...usage }, next.value.content);
      }
    }
  }
  if (options.includeUsage && reply.usage)
    yield chunkEvent(reply, { choices: [], ...usageField(reply) }, false);
  yield { wire: "data: [DONE]\n\n", content: false };
}

function chunkEvent(
  reply: SimulatedReply,
  fields: Record<string, unknown>,
  content: boolean,
): WireEvent {
  return { wire: sseEvent({ ...envelope(reply, "chat.completion.chunk"), ...fields }), content };
}

const envelope = (reply: SimulatedReply, object: string): Record<string, unknown> => ({
  id: `chatcmpl-${reply.seed}`,
  object,
  created: reply.createdAtSeconds,
  model: reply.model,
  system_fingerprint: "fp_sandbox",
});

function* choiceDeltas(choice: SimulatedChoice): Generator<Delta> {
  yield { delta: { role: "assistant", content: "" }, content: false };
  for (const token of choice.reasoning)
    yield { delta: { reasoning_content: token }, content: true };
  for (const token of choice.text) yield { delta: { content: token }, content: true, token };
  for (const [index, call] of choice.calls.entries()) yield* callDeltas(call, index);
  yield { delta: {}, content: false, finish: choice.finish };
}

/**
 * OpenAI streams a custom call's input as `custom.input` deltas, a function's as
 * `function.arguments`.
 */
function* callDeltas(call: SimulatedCall, index: number): Generator<Delta> {
  const field = call.kind === "custom" ? "input" : "arguments";
  const head = {
    index,
    id: call.id,
    type: call.kind,
    [call.kind]: { name: call.name, [field]: "" },
  };
  yield { delta: { tool_calls: [head] }, content: false };
  for (const token of call.argumentTokens) {
    yield { delta: { tool_calls: [{ index, [call.kind]: { [field]: token } }] }, content: true };
  }
}

const chunkChoice = (
  index: number,
  { delta, token, finish }: Delta,
  options: ChatReplyOptions,
): unknown => ({
  index,
  delta,
  logprobs: token === undefined ? null : logprobsOf([token], options.topLogprobs),
  finish_reason: finish ?? null,
});

function chatMessage(choice: SimulatedChoice): Record<string, unknown> {
  const calls = choice.calls.map((call) => ({
    id: call.id,
    type: call.kind,
    [call.kind]: {
      name: call.name,
      [call.kind === "custom" ? "input" : "arguments"]: call.argumentTokens.join(""),
    },
  }));
  return {
    role: "assistant",
    content: calls.length > 0 ? null : choice.text.join(""),
    ...(choice.reasoning.length > 0 ? { reasoning_content: choice.reasoning.join("") } : {}),
    refusal: null,
    annotations: [],
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

/** Made-up log probabilities: the further down the list, the less likely. */
function logprobsOf(tokens: readonly string[], topLogprobs: number | undefined): unknown {
  if (topLogprobs === undefined) return null;
  const entry = (token: string, logprob: number): Record<string, unknown> => ({
    token,
    logprob,
    bytes: [...new TextEncoder().encode(token)],
  });
  return {
    content: tokens.map((token) => ({
      ...entry(token, -0.125),
      top_logprobs: Array.from({ length: topLogprobs }, (_, rank) =>
        entry(rank === 0 ? token : `${token}~${rank}`, rank === 0 ? -0.125 : -2 - rank),
      ),
    })),
    refusal: null,
  };
}

function usageField({ usage }: SimulatedReply): Record<string, unknown> {
  if (usage === undefined) return {};
  return {
    usage: {
      prompt_tokens: usage.inputTokens,
      completion_tokens: usage.outputTokens,
      total_tokens: usage.inputTokens + usage.outputTokens,
      prompt_tokens_details: {
        cached_tokens: usage.cachedTokens,
        cache_write_tokens: usage.cacheWriteTokens,
        audio_tokens: 0,
      },
      completion_tokens_details: {
        reasoning_tokens: usage.reasoningTokens,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
  };
}
