import type {
  LogProbabilities,
  TokenLogProbability,
  CanonicalResponse,
  MeteredUsage,
} from "../../canonical/response.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { SimulatedCall, SimulatedChoice, SimulatedReply, SimulatedUsage } from "../dialect.ts";

/** What a request says about the shape of its answer. */
export interface ReplyOptions {
  /** Alternatives beside each token's log probability; undefined when none was asked for. */
  topLogprobs?: number | undefined;
  /** Thoughts are summaries, sealed as a whole where this is `sealed`. */
  summarizes?: "open" | "sealed" | undefined;
  /** Thoughts carry a signature, and their text is left out where this is `omitted`. */
  signs?: "shown" | "omitted" | undefined;
  /** Ids of calls begin with this instead of `call_`. */
  callPrefix?: string | undefined;
}

/** The parts of a streamed answer, a token each; the choices take turns. */
export function* replyParts(reply: SimulatedReply, options: ReplyOptions): Generator<StreamPart> {
  const { seed, model, createdAtSeconds, usage } = reply;
  yield {
    type: "response-start",
    id: seed,
    model,
    createdAtSeconds,
    systemFingerprint: "fp_sandbox",
  };
  const open = reply.choices.map((choice, index) => choiceParts(choice, { index, seed, options }));
  while (open.length > 0) {
    for (const parts of [...open]) {
      const next = parts.next();
      if (next.done) open.splice(open.indexOf(parts), 1);
      else yield next.value;
    }
  }
  if (usage !== undefined) yield { type: "usage", usage: metered(usage) };
  yield { type: "response-end" };
}

/** The whole answer: what its parts add up to. */
export function replyResponse(reply: SimulatedReply, options: ReplyOptions): CanonicalResponse {
  const assembler = new ResponseAssembler();
  for (const part of replyParts(reply, options)) assembler.add(part);
  return assembler.response();
}

/** Usage of the answer in disjoint parts. */
const metered = (usage: SimulatedUsage): MeteredUsage => ({
  usage: {
    inputTokens: usage.inputTokens - usage.cachedTokens - usage.cacheWriteTokens,
    cacheReadTokens: usage.cachedTokens,
    cacheWriteTokens: usage.cacheWriteTokens,
    outputTokens: usage.outputTokens - usage.reasoningTokens,
    reasoningTokens: usage.reasoningTokens,
  },
  estimated: false,
  clamped: false,
});

interface ChoiceFacts {
  index: number;
  seed: string;
  options: ReplyOptions;
}

function* choiceParts(
  choice: SimulatedChoice,
  { index, seed, options }: ChoiceFacts,
): Generator<StreamPart> {
  let itemIndex = 0;
  const place = (): ItemPlace => ({ choiceIndex: index, itemIndex: itemIndex++ });
  if (choice.reasoning.length > 0)
    yield* thoughtParts(choice.reasoning, { place: place(), seed, options });
  if (choice.text.length > 0) yield* textParts(choice.text, { place: place(), options });
  for (const call of choice.calls) yield* callParts(call, { place: place(), options });
  const { finish, stopSequence } = choice;
  yield {
    type: "finish",
    choiceIndex: index,
    finish:
      stopSequence === undefined ? { reason: finish } : { reason: "stop_sequence", stopSequence },
  };
}

function* thoughtParts(
  tokens: readonly string[],
  { place, seed, options }: { place: ItemPlace; seed: string; options: ReplyOptions },
): Generator<StreamPart> {
  const { summarizes, signs } = options;
  yield { type: "reasoning-start", ...place };
  if (signs !== "omitted") {
    const summary = summarizes === undefined ? {} : { summaryIndex: 0 };
    for (const text of tokens) yield { type: "reasoning-delta", ...place, text, ...summary };
  }
  yield {
    type: "reasoning-end",
    ...place,
    ...(signs !== undefined && { signature: base64(`sandbox thinking ${seed}`) }),
    ...(summarizes === "sealed" && { encrypted: base64(tokens.join("")) }),
  };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

function* textParts(
  tokens: readonly string[],
  { place, options: { topLogprobs } }: { place: ItemPlace; options: ReplyOptions },
): Generator<StreamPart> {
  yield { type: "text-start", ...place };
  for (const text of tokens) {
    if (topLogprobs !== undefined)
      yield {
        type: "logprobs",
        choiceIndex: place.choiceIndex,
        ...logProbabilities(text, topLogprobs),
      };
    yield { type: "text-delta", ...place, text };
  }
  yield { type: "text-end", ...place };
}

function* callParts(
  call: SimulatedCall,
  { place, options }: { place: ItemPlace; options: ReplyOptions },
): Generator<StreamPart> {
  const { name, kind } = call;
  const id = call.id.replace("call_", options.callPrefix ?? "call_");
  yield { type: "tool-call-start", ...place, kind, id, name };
  for (const text of call.argumentTokens)
    yield { type: "tool-call-delta", ...place, arguments: text };
  yield { type: "tool-call-end", ...place };
}

/** Made-up log probabilities: the further down the list, the less likely. */
function logProbabilities(token: string, topCount: number): LogProbabilities {
  const entry = (text: string, logprob: number): Omit<TokenLogProbability, "top"> => ({
    token: text,
    logprob,
    bytes: [...new TextEncoder().encode(text)],
  });
  const top = Array.from({ length: topCount }, (_, rank) =>
    entry(rank === 0 ? token : `${token}~${rank}`, rank === 0 ? -0.125 : -2 - rank),
  );
  return { content: [{ ...entry(token, -0.125), top }] };
}
