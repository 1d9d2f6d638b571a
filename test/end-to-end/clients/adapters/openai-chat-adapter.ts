import OpenAI from "openai";
import type { ClientUnderTest, Question, Reply, Turn } from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { emptyReply } from "./empty-reply.ts";
import { costOf } from "./cost-of.ts";
import { openaiErrorNames, openaiFailure } from "./openai-failure.ts";

type UserTurn = Turn & { role: "user" };
type Message = OpenAI.ChatCompletionMessageParam;

/** A conversation in the chat dialect. */
function chatMessages(turns: readonly Turn[]): Message[] {
  return turns.flatMap((turn): Message[] => {
    if (turn.role === "user") return [{ role: "user", content: userContent(turn) }];
    if (turn.role === "tools")
      return turn.results.map(({ id, text }) => ({
        role: "tool",
        tool_call_id: id,
        content: text,
      }));
    return [turn.said.native as Message];
  });
}

function userContent({ text, file }: UserTurn): string | OpenAI.ChatCompletionContentPart[] {
  if (file === undefined) return text;
  const url = `data:${file.mediaType};base64,${file.data}`;
  return [
    { type: "text", text },
    file.mediaType === "image/png"
      ? { type: "image_url", image_url: { url } }
      : { type: "file", file: { filename: file.name, file_data: url } },
  ];
}

const requestOf = (question: Question): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
  model: question.model,
  messages: chatMessages(question.turns),
  ...(question.maxTokens === undefined ? {} : { max_completion_tokens: question.maxTokens }),
  ...(question.reasoning ? { reasoning_effort: "high" } : {}),
  ...(question.tools ? { tools: [{ type: "function", function: { ...weatherTool } }] } : {}),
  ...(question.structured
    ? {
        response_format: {
          type: "json_schema",
          json_schema: { name: "plan", strict: true, schema: planSchema },
        },
      }
    : {}),
});

const asText = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

const finishes: Readonly<Record<string, Reply["finish"]>> = {
  stop: "stop",
  length: "length",
  tool_calls: "calls",
};

function replyOf(completion: OpenAI.ChatCompletion, question: Question): Reply {
  const [choice] = completion.choices;
  const text = choice?.message.content ?? "";
  return {
    text,
    reasoning: asText(Reflect.get(Object(choice?.message), "reasoning_content")),
    native: choice?.message,
    calls: (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === "function"
        ? [
            {
              id: call.id,
              name: call.function.name,
              arguments: JSON.parse(call.function.arguments),
            },
          ]
        : [],
    ),
    finish: finishes[choice?.finish_reason ?? ""] ?? "stop",
    usage: {
      input: completion.usage?.prompt_tokens ?? NaN,
      output: completion.usage?.completion_tokens ?? NaN,
      cost: costOf(completion.usage),
    },
    ...(question.structured ? { parsed: JSON.parse(text) } : {}),
  };
}

async function ask(openai: OpenAI, question: Question): Promise<Reply> {
  const request = requestOf(question);
  const { completions } = openai.chat;
  if (!question.stream)
    return replyOf(
      await (question.structured ? completions.parse(request) : completions.create(request)),
      question,
    );
  const stream = completions.stream({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  if (question.leaveAtText) {
    stream.on("content.delta", () => stream.abort());
    await stream.done().catch(onlyAborts);
    return emptyReply;
  }
  return replyOf(await stream.finalChatCompletion(), question);
}

const onlyAborts = (error: unknown): void => {
  if (!(error instanceof OpenAI.APIUserAbortError)) throw error;
};

/** The `openai` package with its strict stream helper, on chat completions. */
export const openaiChat: ClientUnderTest = {
  name: "openai, chat",
  connect: ({ origin, apiKey, retries }) => {
    const openai = new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries: retries });
    return (question) => ask(openai, question);
  },
  failureOf: openaiFailure,
  errorNames: openaiErrorNames,
  cannot: {
    "reasoning in streams": "its helper keeps the last piece of a member that it does not know",
    signatures: "its helper keeps the last piece of a member that it does not know",
  },
};
