import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  type AIMessage,
  type AIMessageChunk,
  HumanMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { BaseMessage, UsageMetadata } from "@langchain/core/messages";
import type {
  ClientFailure,
  ClientOptions,
  ClientUnderTest,
  Question,
  Reply,
  Turn,
} from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { costOf } from "./cost-of.ts";
import { emptyReply } from "./empty-reply.ts";

const messagesOf = (turns: readonly Turn[]): BaseMessage[] =>
  turns.flatMap((turn): BaseMessage[] => {
    if (turn.role === "assistant") return [turn.said.native as AIMessage];
    if (turn.role === "tools")
      return turn.results.map(
        ({ id, name, text }) => new ToolMessage({ tool_call_id: id, name, content: text }),
      );
    const { text, file } = turn;
    if (file === undefined) return [new HumanMessage(text)];
    const { mediaType: mimeType, data, name: filename } = file;
    const type = mimeType === "image/png" ? ("image" as const) : ("file" as const);
    const block = { type, data, mimeType, metadata: { filename } };
    return [new HumanMessage({ contentBlocks: [{ type: "text", text }, block] })];
  });

const tool = {
  type: "function",
  function: {
    name: weatherTool.name,
    description: weatherTool.description,
    parameters: weatherTool.parameters,
  },
};

const finishes: Readonly<Record<string, Reply["finish"]>> = {
  stop: "stop",
  end_turn: "stop",
  completed: "stop",
  length: "length",
  max_tokens: "length",
  incomplete: "length",
  MAX_TOKENS: "length",
};

function replyOf(message: AIMessage): Reply {
  const facts = message.response_metadata;
  const counts = message.usage_metadata as UsageMetadata | undefined;
  const calls = (message.tool_calls ?? []).map(({ id, name, args }) => ({
    id: id ?? "",
    name,
    arguments: args,
  }));
  const finish: unknown =
    facts["finish_reason"] ??
    facts["finishReason"] ??
    facts["stop_reason"] ??
    facts["status"] ??
    message.additional_kwargs["stop_reason"];
  return {
    text: message.text,
    reasoning: message.contentBlocks
      .map((block) => (block.type === "reasoning" ? block.reasoning : ""))
      .join(""),
    calls,
    finish: calls.length > 0 ? "calls" : (finishes[String(finish)] ?? "stop"),
    usage: {
      input: counts?.input_tokens ?? NaN,
      output: counts?.output_tokens ?? NaN,
      cost: costOf(facts["usage"]),
    },
    native: message,
  };
}

async function ask(model: BaseChatModel, question: Question): Promise<Reply> {
  const messages = messagesOf(question.turns);
  if (question.structured) {
    const answer = await model
      .withStructuredOutput(planSchema, { method: "jsonSchema", includeRaw: true })
      .invoke(messages);
    return { ...replyOf(answer.raw as AIMessage), parsed: answer.parsed };
  }
  const runnable = question.tools ? (model.bindTools?.([tool]) ?? model) : model;
  if (!question.stream) return replyOf((await runnable.invoke(messages)) as AIMessage);
  let sum: AIMessageChunk | undefined;
  const leaving = new AbortController();
  try {
    for await (const chunk of await runnable.stream(messages, { signal: leaving.signal })) {
      const piece = chunk as AIMessageChunk;
      sum = sum === undefined ? piece : sum.concat(piece);
      if (question.leaveAtText && piece.text !== "") leaving.abort();
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
  return sum === undefined || question.leaveAtText
    ? emptyReply
    : replyOf(sum as unknown as AIMessage);
}

/** LangChain over one of its models. */
export const langchain = (
  name: string,
  parts: {
    model: (options: ClientOptions, question: Question) => BaseChatModel;
    failureOf: (error: unknown) => ClientFailure;
    errorNames: ClientUnderTest["errorNames"];
    cannot?: ClientUnderTest["cannot"];
  },
): ClientUnderTest => ({
  name,
  connect: (options) => (question) => ask(parts.model(options, question), question),
  failureOf: parts.failureOf,
  errorNames: parts.errorNames,
  cannot: { retries: "looks at the status only", ...parts.cannot },
});
