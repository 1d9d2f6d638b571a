import type { JsonObject } from "../../canonical/json.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  Tool,
  ToolChoice as CanonicalToolChoice,
} from "../../canonical/request.ts";
import type {
  StreamPart,
  ItemPlace,
  LogProbabilities,
  TokenLogProbability,
  CanonicalResponse,
  MeteredUsage,
} from "../../canonical/response.ts";
import { anthropicMessages as messages } from "../../dialects/anthropic-messages/index.ts";
import type { ClientDialect, ResponseContext, StreamEncoder } from "../../dialects/dialect.ts";
import { openaiChat as chat } from "../../dialects/openai-chat/index.ts";
import { openaiResponses as responses } from "../../dialects/openai-responses/index.ts";
import { asArray, asObject } from "../../dialects/shared/wire-fields.ts";
import {
  failureMessage,
  InvalidRequestError,
  sseEvent,
  type Refusal,
  type SandboxDialect,
  type SimulatedReply,
  type WireEvent,
  type SimulatedCall,
  type SimulatedChoice,
  type SimulatedUsage,
} from "../dialect.ts";
import {
  completePrompt,
  effortFromBudget,
  effortFromName,
  type ReadPrompt,
  type AnswerFormat,
  type Effort,
  type OfferedTool,
  type ToolChoice,
  type Turn,
} from "../prompt.ts";
import { openaiError, type PlainSurface } from "./plain-surfaces.ts";
import type { AssistantPart, Message, UserPart } from "../../canonical/message.ts";
import { isReasoningDisabled } from "../../canonical/reasoning.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";

/** The form of the answer that a request asks for. */
interface ReplyOptions {
  /**
   * The number of alternatives beside each token's log probability; undefined when none was
   * requested.
   */
  topLogprobs?: number | undefined;
  /**
   * Set when reasoning is shown as summaries, which are sealed as a whole where this is `sealed`.
   */
  summarizes?: "open" | "sealed" | undefined;
  /** Set when reasoning carries a signature; its text is left out where this is `omitted`. */
  signs?: "shown" | "omitted" | undefined;
  /** The prefix of call ids instead of `call_`. */
  callPrefix?: string | undefined;
}

/** Yields the parts of a streamed answer, one token each; the choices take turns. */
function* replyParts(reply: SimulatedReply, options: ReplyOptions): Generator<StreamPart> {
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

/** Returns the whole answer that its parts add up to. */
function replyResponse(reply: SimulatedReply, options: ReplyOptions): CanonicalResponse {
  const assembler = new ResponseAssembler();
  for (const part of replyParts(reply, options)) assembler.add(part);
  return assembler.response();
}

/** Returns the usage of the answer in disjoint parts. */
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

/** Returns made-up log probabilities: the further down the list, the less likely. */
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

/** Returns the prompt of a decoded request. */
const readPrompt = (request: CanonicalRequest): ReadPrompt => ({
  model: request.model,
  turns: request.messages.map(readTurn),
  tools: (request.tools ?? []).flatMap(readTool),
  toolChoice: readToolChoice(request.toolChoice),
  parallelCalls: request.parallelToolCalls ?? true,
  format: readFormat(request.output),
  maxTokens: request.maxOutputTokens,
  stop: [...(request.stop ?? [])],
  effort: readEffort(request),
  choiceCount: request.choiceCount ?? 1,
});

function readTurn({ role, parts }: Message): Turn {
  const texts = parts.map(textOf);
  return {
    role,
    text: texts.filter((text) => text).join("\n"),
    mediaCount: texts.filter((text) => text === undefined).length,
  };
}

/**
 * Returns the text of a part; undefined for images, sound, files and parts that only one dialect
 * has.
 */
function textOf(part: UserPart | AssistantPart): string | undefined {
  switch (part.type) {
    case "text":
      return part.text;
    case "reasoning":
      return part.text ?? part.summary?.join("\n") ?? "";
    case "refusal":
      return part.refusal;
    case "tool-call":
      return part.arguments;
    default:
      return undefined;
  }
}

/**
 * Reads a tool. Tools that the provider runs itself have no schema; the sandbox does not run them.
 */
function readTool(tool: Tool): OfferedTool[] {
  if (tool.type === "hosted" || tool.namespace !== undefined) return [];
  const schema: JsonObject | undefined = tool.type === "function" ? tool.parameters : undefined;
  return [{ name: tool.name, kind: tool.type, schema }];
}

function readToolChoice(choice: CanonicalToolChoice = { type: "auto" }): ToolChoice {
  switch (choice.type) {
    case "tool":
      return { mode: "named", name: choice.name };
    case "allowed": {
      const first = choice.tools.find((tool) => tool.type !== "hosted");
      return first === undefined ? { mode: "auto" } : { mode: "named", name: first.name };
    }
    case "hosted":
      return { mode: "auto" };
    default:
      return { mode: choice.type };
  }
}

function readFormat(output: OutputFormat = { type: "text" }): AnswerFormat {
  return output.type === "json-schema"
    ? { kind: "schema", schema: output.schema }
    : { kind: output.type };
}

/** Returns the effort. Messages turns reasoning on; the other dialects name an effort. */
function readEffort({ dialect, reasoning }: CanonicalRequest): Effort | undefined {
  if (reasoning === undefined || isReasoningDisabled(reasoning)) return undefined;
  const { effort, budgetTokens, enabled, mode } = reasoning;
  if (dialect !== "anthropic-messages") return effortFromName(effort);
  if (mode === "adaptive") return effortFromName(effort ?? "medium");
  return enabled === true ? effortFromBudget(budgetTokens ?? 0) : undefined;
}

/** The sandbox's part of a dialect, beside the codec that it shares with the gateway. */
interface Speech {
  dialect: ClientDialect;
  /** The prefix of answers' ids. */
  idPrefix: string;
  /** Completes what the codec has read, and refuses what the sandbox does not answer. */
  prompt?(read: ReadPrompt, body: JsonObject): ReadPrompt;
  optionsOf(request: CanonicalRequest, body: JsonObject): ReplyOptions;
  /** Returns the frames of a stream in the vendor's form, where the gateway's own differ. */
  frame?(frame: string, facts: { request: CanonicalRequest; reply: SimulatedReply }): string[];
  /** Returns the body of a whole answer in the vendor's form, likewise. */
  body?(body: JsonObject, reply: SimulatedReply): JsonObject;
  /**
   * Returns what ends a stream that fails, in the vendor's form; absent means the codec's error.
   */
  failure?(reply: SimulatedReply): string;
  /** Returns the vendor's error body; that of the codec is the gateway's, with its metadata. */
  refusal: SandboxDialect["refusal"];
}

/**
 * Returns a client dialect as the simulated provider speaks it, through the gateway's own codecs.
 */
function spoken(speech: Speech): SandboxDialect {
  const { dialect, idPrefix, refusal } = speech;
  return {
    refusal,
    read(body) {
      const request = dialect.decodeRequest(body);
      const fields = asObject(body) ?? {};
      const prompt = readPrompt(request);
      const options = speech.optionsOf(request, fields);
      const contextOf = (reply: SimulatedReply): ResponseContext => ({
        request,
        requestBody: fields,
        id: idPrefix + reply.seed,
        inputTokens: reply.usage?.inputTokens ?? 0,
      });
      let encoder: StreamEncoder | undefined;
      return {
        prompt: speech.prompt?.(prompt, fields) ?? prompt,
        stream: request.stream,
        whole(reply) {
          const whole = dialect.encodeResponse(replyResponse(reply, options), contextOf(reply));
          return speech.body?.(whole, reply) ?? whole;
        },
        *events(reply) {
          encoder = dialect.createStreamEncoder(contextOf(reply));
          const frameOf = speech.frame ?? ((frame: string) => [frame]);
          for (const part of replyParts(reply, options))
            for (const event of eventsOf(part, encoder))
              for (const wire of frameOf(event.wire, { request, reply })) yield { ...event, wire };
        },
        failure(reply) {
          if (speech.failure !== undefined) return speech.failure(reply);
          encoder ??= dialect.createStreamEncoder(contextOf(reply));
          const error = { message: failureMessage, code: "server_error", type: "server_error" };
          return encoder.encode({ type: "error", fault: "reported", error }).join("");
        },
      };
    },
  };
}

const tokenParts: ReadonlySet<string> = new Set([
  "text-delta",
  "reasoning-delta",
  "tool-call-delta",
]);

/** Returns the frames of one part; the last frame with a token counts as the token's. */
function eventsOf(part: StreamPart, encoder: StreamEncoder): WireEvent[] {
  const frames = encoder.encode(part);
  const tokenIndex = tokenParts.has(part.type) ? frames.length - 1 : -1;
  return frames.map((wire, index) => ({ wire, content: index === tokenIndex }));
}

/** OpenAI's `POST /v1/chat/completions`. */
export const openaiChat = spoken({
  dialect: chat,
  idPrefix: "chatcmpl-",
  refusal: openaiError,
  optionsOf: ({ logProbabilities }) => ({
    topLogprobs: logProbabilities && (logProbabilities.top ?? 0),
  }),
  // OpenAI sends usage where it was requested, and null on the chunks before it.
  frame(frame, { request, reply }) {
    const includesUsage = request.streamOptions?.includeUsage === true;
    const isLast = frame.includes('"choices":[],');
    if (isLast) return includesUsage && reply.usage !== undefined ? [frame] : [];
    return includesUsage ? [frame.replace(/\}\n\n$/, ',"usage":null}\n\n')] : [frame];
  },
  failure: (reply) =>
    sseEvent(openaiError({ status: 500, message: failureMessage, requestId: reply.seed })),
});

/** OpenAI's `POST /v1/responses`, without stored state. */
export const openaiResponses = spoken({
  dialect: responses,
  idPrefix: "resp_",
  refusal: openaiError,
  prompt(read, { previous_response_id: previous }) {
    if (!previous) return read;
    throw new InvalidRequestError(
      `Previous response with id '${String(previous)}' not found: the sandbox stores none.`,
    );
  },
  optionsOf: (_, { include }) => ({
    summarizes: asArray(include)?.includes("reasoning.encrypted_content") ? "sealed" : "open",
  }),
});

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Returns Anthropic's error body. */
const anthropicError = ({ status, message, requestId }: Refusal): Record<string, unknown> => ({
  type: "error",
  error: {
    type: typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "api_error"),
    message,
  },
  request_id: `req_${requestId}`,
});

/** Anthropic's `POST /v1/messages`. */
export const anthropicMessages = spoken({
  dialect: messages,
  idPrefix: "msg_",
  refusal: anthropicError,
  prompt: resultsLast,
  optionsOf: ({ reasoning }) => ({
    signs: reasoning?.display === "omitted" ? "omitted" : "shown",
    callPrefix: "toolu_",
  }),
  // Anthropic pings once after the start.
  frame(frame, { reply }) {
    const shown = reply.usage === undefined ? frame.replace(/,"usage":\{[^}]*\}/, "") : frame;
    const ping = messages.pingFrame;
    return frame.startsWith("event: message_start") ? [shown, ping] : [shown];
  },
  // Arguments that were cut by the token limit are not JSON; a whole answer then has none.
  body({ usage, content, ...body }, reply) {
    const blocks = (asArray(content) ?? []).map((block) =>
      asObject(asObject(block)?.input)?._raw === undefined
        ? block
        : { ...asObject(block), input: {} },
    );
    return { ...body, content: blocks, ...(reply.usage !== undefined && { usage }) };
  },
  failure: (reply) =>
    sseEvent(
      anthropicError({ status: 500, message: failureMessage, requestId: reply.seed }),
      "error",
    ),
});

/**
 * Moves results of tools last in a message: it answers the model's calls and is no new question,
 * even where clients add text to it.
 */
function resultsLast(read: ReadPrompt, { messages: written }: JsonObject): ReadPrompt {
  const blocks = asArray(asObject(asArray(written)?.at(-1))?.content) ?? [];
  const isResult = blocks.some((block) => asObject(block)?.type === "tool_result");
  const spoken = read.turns.at(-1);
  if (!isResult || spoken?.role !== "user") return read;
  const rest = read.turns.slice(0, -1);
  const start = rest.findLastIndex((turn) => turn.role !== "tool") + 1;
  return { ...read, turns: [...rest.slice(0, start), spoken, ...rest.slice(start)] };
}

/** Anthropic's `POST /v1/messages/count_tokens`; counts as the usage of an answer does. */
export const anthropicCountTokens: PlainSurface = {
  read(body) {
    const prompt = completePrompt(
      readPrompt(messages.decodeRequest({ max_tokens: 1, ...asObject(body) })),
      { seed: "", createdAtSeconds: 0 },
    );
    return { text: prompt.lastUserText, answer: () => ({ input_tokens: prompt.inputTokens }) };
  },
  refusal: anthropicError,
};
