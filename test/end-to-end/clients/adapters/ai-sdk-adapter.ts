import {
  APICallError,
  generateText,
  jsonSchema,
  Output,
  streamText,
  tool,
  type LanguageModel,
  type ModelMessage,
  type ToolSet,
} from "ai";
import type {
  ClientOptions,
  ClientUnderTest,
  Question,
  Reply,
  Turn,
} from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { costOf } from "./cost-of.ts";
import { emptyReply } from "./empty-reply.ts";

const messagesOf = (turns: readonly Turn[]): ModelMessage[] =>
  turns.flatMap((turn): ModelMessage[] => {
    if (turn.role === "assistant") return turn.said.native as ModelMessage[];
    if (turn.role === "tools")
      return [
        {
          role: "tool",
          content: turn.results.map(({ id, name, text }) => ({
            type: "tool-result",
            toolCallId: id,
            toolName: name,
            output: { type: "text", value: text },
          })),
        },
      ];
    const { text, file } = turn;
    const files = file ? [{ type: "file" as const, ...file, filename: file.name }] : [];
    return [{ role: "user", content: [{ type: "text", text }, ...files] }];
  });

const plan: Output.Output = Output.object({ schema: jsonSchema(planSchema) });

const tools: ToolSet = {
  [weatherTool.name]: tool({
    description: weatherTool.description,
    inputSchema: jsonSchema(weatherTool.parameters),
  }),
};

const finishes: Readonly<Record<string, Reply["finish"]>> = {
  stop: "stop",
  length: "length",
  "tool-calls": "calls",
};

/** What `generateText` hands out, and `streamText` as promises. */
interface Result {
  text: string;
  reasoningText: string | undefined;
  toolCalls: readonly { toolCallId: string; toolName: string; input: unknown }[];
  finishReason: string;
  usage: { inputTokens: number | undefined; outputTokens: number | undefined; raw?: unknown };
  response: { messages: unknown };
  output?: unknown;
}

const replyOf = (result: Result): Reply => ({
  text: result.text,
  reasoning: result.reasoningText,
  calls: result.toolCalls.map(({ toolCallId, toolName, input }) => ({
    id: toolCallId,
    name: toolName,
    arguments: input,
  })),
  finish: finishes[result.finishReason] ?? "stop",
  usage: {
    input: result.usage.inputTokens ?? NaN,
    output: result.usage.outputTokens ?? NaN,
    cost: costOf(result.usage.raw),
  },
  native: result.response.messages,
  parsed: result.output,
});

/** It warns of models that it does not know, which all of ours are. */
Reflect.set(globalThis, "AI_SDK_LOG_WARNINGS", false);

async function ask(model: LanguageModel, question: Question, retries: number): Promise<Reply> {
  const settings = {
    model,
    messages: messagesOf(question.turns),
    maxRetries: retries,
    tools: question.tools ? tools : {},
    ...(question.reasoning ? { reasoning: "high" as const } : {}),
    ...(question.maxTokens ? { maxOutputTokens: question.maxTokens } : {}),
    output: question.structured ? plan : Output.text(),
  };
  if (!question.stream) {
    const result = await generateText(settings);
    const output: unknown = question.structured ? result.output : undefined;
    return replyOf({ ...pick(result), output });
  }
  return askStreaming(settings, question);
}

const pick = (result: Omit<Result, "output">): Omit<Result, "output"> => ({
  text: result.text,
  reasoningText: result.reasoningText,
  toolCalls: result.toolCalls,
  finishReason: result.finishReason,
  usage: result.usage,
  response: result.response,
});

async function askStreaming(
  settings: Parameters<typeof streamText>[0],
  question: Question,
): Promise<Reply> {
  const leaving = new AbortController();
  const result = streamText({
    ...settings,
    abortSignal: leaving.signal,
    onError: () => undefined,
  });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta" && question.leaveAtText) leaving.abort();
  }
  if (question.leaveAtText) return emptyReply;
  return replyOf({
    text: await result.text,
    reasoningText: await result.reasoningText,
    toolCalls: await result.toolCalls,
    finishReason: await result.finishReason,
    usage: await result.usage,
    response: await result.response,
    output: question.structured ? await result.output : undefined,
  });
}

/** The `ai` package over one of its providers. */
export const aiSdk = (
  name: string,
  model: (options: ClientOptions, id: string) => LanguageModel,
  cannot: ClientUnderTest["cannot"] = {},
): ClientUnderTest => ({
  name,
  connect: (options) => (question) =>
    ask(model(options, question.model), question, options.retries),
  failureOf(error) {
    const message = error instanceof Error ? error.message : JSON.stringify(error);
    if (!APICallError.isInstance(error)) return { status: undefined, name: "none", message };
    return { status: error.statusCode, name: error.name, message };
  },
  errorNames: {
    400: "AI_APICallError",
    401: "AI_APICallError",
    404: "AI_APICallError",
    429: "AI_APICallError",
    502: "AI_APICallError",
  },
  cannot: {
    retries: "waits two seconds before it asks again, and looks at the status only",
    ...cannot,
  },
});
