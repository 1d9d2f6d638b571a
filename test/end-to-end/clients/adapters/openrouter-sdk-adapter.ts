import {
  OpenRouterClient,
  OpenRouterError,
  type ChatAssistantMessage,
  type ChatMessages,
  type ChatRequest,
  type ChatStreamChunk,
  type ChatUsage,
  type OpenRouter,
} from "./openrouter-sdk.ts";
import type {
  ClientOptions,
  ClientUnderTest,
  Question,
  Reply,
  Turn,
} from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { emptyReply } from "./empty-reply.ts";

const messagesOf = (turns: readonly Turn[]): ChatMessages[] =>
  turns.flatMap((turn): ChatMessages[] => {
    if (turn.role === "assistant") return [turn.said.native as ChatAssistantMessage];
    if (turn.role === "tools")
      return turn.results.map(({ id, text }) => ({ role: "tool", toolCallId: id, content: text }));
    const { text, file } = turn;
    if (file === undefined) return [{ role: "user", content: text }];
    const url = `data:${file.mediaType};base64,${file.data}`;
    const part =
      file.mediaType === "image/png"
        ? ({ type: "image_url", imageUrl: { url } } as const)
        : ({ type: "file", file: { filename: file.name, fileData: url } } as const);
    return [{ role: "user", content: [{ type: "text", text }, part] }];
  });

const requestOf = (question: Question): ChatRequest => ({
  model: question.model,
  messages: messagesOf(question.turns),
  ...(question.maxTokens === undefined ? {} : { maxTokens: question.maxTokens }),
  ...(question.reasoning ? { reasoning: { effort: "high" } } : {}),
  ...(question.tools ? { tools: [{ type: "function", function: { ...weatherTool } }] } : {}),
  ...(question.structured
    ? {
        responseFormat: {
          type: "json_schema",
          jsonSchema: { name: "plan", strict: true, schema: planSchema },
        },
      }
    : {}),
});

const finishes: Readonly<Record<string, Reply["finish"]>> = {
  stop: "stop",
  length: "length",
  tool_calls: "calls",
};

/** A whole answer, or what the pieces of a stream add up to. */
interface Answer {
  message: ChatAssistantMessage;
  finishReason: string | null;
  usage: ChatUsage | undefined;
}

function replyOf({ message, finishReason, usage }: Answer, question: Question): Reply {
  const text = typeof message.content === "string" ? message.content : "";
  return {
    text,
    reasoning: message.reasoning ?? thoughtsOf(message),
    calls: (message.toolCalls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    })),
    finish: finishes[finishReason ?? ""] ?? "stop",
    usage: {
      input: usage?.promptTokens ?? NaN,
      output: usage?.completionTokens ?? NaN,
      cost: usage?.cost ?? undefined,
    },
    native: message,
    ...(question.structured ? { parsed: JSON.parse(text) } : {}),
  };
}

function thoughtsOf({ reasoningDetails = [] }: ChatAssistantMessage): string {
  return reasoningDetails
    .map((detail) => ("text" in detail ? detail.text : "summary" in detail ? detail.summary : ""))
    .join("");
}

const emptyAnswer = (): Answer => ({
  message: { role: "assistant", content: "" },
  finishReason: null,
  usage: undefined,
});

function addChunk(answer: Answer, chunk: ChatStreamChunk): void {
  if (chunk.error) throw new Error(chunk.error.message);
  answer.usage = chunk.usage ?? answer.usage;
  const [choice] = chunk.choices;
  if (choice === undefined) return;
  const { message } = answer;
  answer.finishReason = choice.finishReason ?? answer.finishReason;
  message.content = `${String(message.content)}${choice.delta.content ?? ""}`;
  if (choice.delta.reasoning) {
    message.reasoning = `${message.reasoning ?? ""}${choice.delta.reasoning}`;
  }
  if (choice.delta.reasoningDetails) {
    message.reasoningDetails = [
      ...(message.reasoningDetails ?? []),
      ...choice.delta.reasoningDetails,
    ];
  }
  for (const { index, id, function: called } of choice.delta.toolCalls ?? []) {
    message.toolCalls ??= [];
    const call = (message.toolCalls[index] ??= {
      id: id ?? "",
      type: "function",
      function: { name: called?.name ?? "", arguments: "" },
    });
    call.function.arguments += called?.arguments ?? "";
  }
}

async function ask(client: OpenRouter, question: Question): Promise<Reply> {
  const chatRequest = requestOf(question);
  if (!question.stream) {
    const result = await client.chat.send({ chatRequest });
    if (!("choices" in result)) throw new Error("a stream came for a whole answer");
    const [choice] = result.choices;
    const message = choice?.message ?? emptyAnswer().message;
    const finishReason = choice?.finishReason ?? null;
    return replyOf({ message, finishReason, usage: result.usage }, question);
  }
  const stream = await client.chat.send({ chatRequest: { ...chatRequest, stream: true } });
  if ("choices" in stream) throw new Error("a whole answer came for a stream");
  const answer = emptyAnswer();
  for await (const chunk of stream) {
    addChunk(answer, chunk);
    if (question.leaveAtText && answer.message.content !== "") return emptyReply;
  }
  return replyOf(answer, question);
}

const clientOf = ({ origin, apiKey, retries }: ClientOptions): OpenRouter =>
  new OpenRouterClient({
    serverURL: `${origin}/api/v1`,
    apiKey,
    retryConfig:
      retries === 0
        ? { strategy: "none" }
        : {
            strategy: "backoff",
            backoff: { initialInterval: 1, maxInterval: 1, exponent: 1, maxElapsedTime: 1000 },
          },
  });

/** OpenRouter's own package. */
export const openrouterSdk: ClientUnderTest = {
  name: "@openrouter/sdk",
  connect: (options) => {
    const client = clientOf(options);
    return (question) => ask(client, question);
  },
  failureOf(error) {
    const message = error instanceof Error ? error.message : JSON.stringify(error);
    if (!(error instanceof OpenRouterError)) return { status: undefined, name: "none", message };
    return { status: error.statusCode, name: error.constructor.name, message: error.body };
  },
  errorNames: {
    400: "BadRequestResponseError",
    401: "UnauthorizedResponseError",
    404: "NotFoundResponseError",
    429: "TooManyRequestsResponseError",
    502: "BadGatewayResponseError",
  },
  cannot: {
    reasoning_content: "reads reasoning and reasoning_details",
    retries: "looks at the status only",
    "words in streams": "reads no error whose code is not a number",
  },
};
