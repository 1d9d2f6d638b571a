/** A tool call in a fixture; `id` and `name` have defaults. */
interface FixtureToolCall {
  id?: string;
  name?: string;
  /** JSON text, or the pieces in which a stream sends it. */
  arguments?: string | readonly string[];
}

/** The content of a chat answer. An absent field has a plain default; null is sent as null. */
export interface ChatAnswer {
  id?: string;
  model?: string;
  /** The text, or the pieces in which a stream sends it. */
  text?: string | readonly string[] | null;
  /** Reasoning, under `reasoningField`. */
  reasoning?: string | readonly string[];
  reasoningField?: "reasoning_content" | "reasoning";
  toolCalls?: readonly FixtureToolCall[];
  finishReason?: string | null;
  /** The usage object as it is sent, however absurd; undefined sends none. */
  usage?: unknown;
  /** Further fields of the answer or of every chunk. */
  extra?: Readonly<Record<string, unknown>>;
}

/** The content of a streamed chat answer, and the place of its usage. */
export interface StreamedChatAnswer extends ChatAnswer {
  /** On the finish chunk, in its own chunk after it, on every chunk, or nowhere. */
  usageOn?: "finish" | "after" | "every" | "never";
}

/** Usage of the default answers: 11 tokens in, 7 out. */
export const plainUsage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

const pieces = (content: string | readonly string[] | null | undefined): readonly string[] =>
  typeof content === "string" ? [content] : (content ?? []);

const envelope = (answer: ChatAnswer, object: string): Record<string, unknown> => ({
  id: answer.id ?? "chatcmpl-fixture",
  object,
  created: 1_700_000_000,
  model: answer.model ?? "fixture-model",
  ...answer.extra,
});

const defaultText = ["Hel", "lo ", "wörld 😀"];

/** The text of an answer whose fixture does not set another. */
export const fixtureText = defaultText.join("");

const textOf = (answer: ChatAnswer): readonly string[] | null => {
  if (answer.text === null) return null;
  if (answer.text === undefined) return answer.toolCalls ? null : defaultText;
  return pieces(answer.text);
};

const finishOf = (answer: ChatAnswer): string | null =>
  answer.finishReason === undefined
    ? answer.toolCalls
      ? "tool_calls"
      : "stop"
    : answer.finishReason;

const callHead = (call: FixtureToolCall, index: number): { id: string; name: string } => ({
  id: call.id ?? `call_fixture_${index}`,
  name: call.name ?? "get_weather",
});

/** Returns the body of a whole chat answer. */
export function chatCompletion(answer: ChatAnswer = {}): Record<string, unknown> {
  const usage = "usage" in answer ? answer.usage : plainUsage;
  const toolCalls = answer.toolCalls?.map((call, index) => {
    const { id, name } = callHead(call, index);
    return {
      id,
      type: "function",
      function: { name, arguments: pieces(call.arguments ?? "{}").join("") },
    };
  });
  const message = {
    role: "assistant",
    content: textOf(answer)?.join("") ?? null,
    ...(answer.reasoning ? { [reasoningField(answer)]: pieces(answer.reasoning).join("") } : {}),
    ...(toolCalls ? { tool_calls: toolCalls } : {}),
  };
  return {
    ...envelope(answer, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
    ...(usage === undefined ? {} : { usage }),
  };
}

const reasoningField = (answer: ChatAnswer): string => answer.reasoningField ?? "reasoning_content";

/** Returns the chunks of a streamed chat answer, in OpenAI's order, without `[DONE]`. */
export function chatChunks(answer: StreamedChatAnswer = {}): Record<string, unknown>[] {
  const usageOn = answer.usageOn ?? "after";
  const usage = "usage" in answer ? answer.usage : plainUsage;
  const usageField = usage === undefined || usageOn === "never" ? {} : { usage };
  const every = usageOn === "every" ? usageField : {};
  const chunk = (
    delta: Record<string, unknown>,
    finish: string | null = null,
  ): Record<string, unknown> => ({
    ...envelope(answer, "chat.completion.chunk"),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...every,
  });
  const finish = finishOf(answer);
  const finishChunk = { ...chunk({}, finish), ...(usageOn === "finish" ? usageField : {}) };
  const after = { ...envelope(answer, "chat.completion.chunk"), choices: [], ...usageField };
  return [
    chunk({ role: "assistant", content: "" }),
    ...contentDeltas(answer).map((delta) => chunk(delta)),
    ...(finish === null ? [] : [finishChunk]),
    ...(usageOn === "after" && usage !== undefined ? [after] : []),
  ];
}

function contentDeltas(answer: ChatAnswer): Record<string, unknown>[] {
  return [
    ...pieces(answer.reasoning).map((text) => ({ [reasoningField(answer)]: text })),
    ...(textOf(answer) ?? []).map((text) => ({ content: text })),
    ...(answer.toolCalls ?? []).flatMap(callDeltas),
  ];
}

function callDeltas(call: FixtureToolCall, index: number): Record<string, unknown>[] {
  const { id, name } = callHead(call, index);
  return [
    { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
    ...pieces(call.arguments ?? "{}").map((text) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    })),
  ];
}

/** Returns OpenAI's error body. */
export const chatError = (
  message: string,
  fields: { type?: string; code?: string | number | null; param?: string | null } = {},
): Record<string, unknown> => ({
  error: { message, type: "server_error", param: null, code: null, ...fields },
});

/** Usage objects as upstreams send them, sound ones and absurd ones. */
export const usageFixtures = {
  plain: plainUsage,
  /** 100 of 130 tokens read from a cache, 20 written to it: 10 remain. */
  cached: {
    prompt_tokens: 130,
    completion_tokens: 7,
    total_tokens: 137,
    prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
  },
  reasoning: {
    prompt_tokens: 11,
    completion_tokens: 70,
    total_tokens: 81,
    completion_tokens_details: { reasoning_tokens: 63 },
  },
  audio: {
    prompt_tokens: 50,
    completion_tokens: 40,
    total_tokens: 90,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 30, image_tokens: 5 },
    completion_tokens_details: { audio_tokens: 25, reasoning_tokens: 0 },
  },
  zero: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  /** The vendor's own cost in USD, as OpenRouter sends it. */
  priced: { ...plainUsage, cost: 0.000123 },
  negative: { prompt_tokens: -11, completion_tokens: -7, total_tokens: -18 },
  huge: { prompt_tokens: 1e15, completion_tokens: 1e308, total_tokens: 1e308 },
  strings: { prompt_tokens: "11", completion_tokens: "7", total_tokens: "18" },
  fractions: { prompt_tokens: 11.5, completion_tokens: 6.5, total_tokens: 18 },
  nulls: {
    prompt_tokens: null,
    completion_tokens: null,
    total_tokens: null,
    prompt_tokens_details: null,
  },
  empty: {},
  text: "none",
  /** More tokens read from the cache than the input has in total. */
  contradictory: {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 999,
    prompt_tokens_details: { cached_tokens: 100 },
    completion_tokens_details: { reasoning_tokens: 50 },
  },
  /** Usage of only one side. */
  promptOnly: { prompt_tokens: 11 },
  completionOnly: { completion_tokens: 7 },
  missing: undefined,
} as const satisfies Record<string, unknown>;

export type UsageFixtureName = keyof typeof usageFixtures;
