import Anthropic from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import type { ClientUnderTest, Question, Reply, Turn } from "../support/client-under-test.ts";
import { planSchema, weatherTool } from "../support/client-under-test.ts";
import { anthropicErrorNames } from "./anthropic-error-names.ts";
import { costOf } from "./cost-of.ts";
import { emptyReply } from "./empty-reply.ts";

/** A conversation in the Messages dialect. */
const anthropicMessages = (turns: readonly Turn[]): Anthropic.MessageParam[] =>
  turns.map((turn): Anthropic.MessageParam => {
    if (turn.role === "assistant")
      return { role: "assistant", content: turn.said.native as Anthropic.ContentBlockParam[] };
    if (turn.role === "tools")
      return {
        role: "user",
        content: turn.results.map(({ id, text }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: text,
        })),
      };
    const { text, file } = turn;
    if (file === undefined) return { role: "user", content: text };
    const { mediaType, data, name: title } = file;
    return {
      role: "user",
      content: [
        { type: "text", text },
        mediaType === "image/png"
          ? { type: "image", source: { type: "base64", media_type: mediaType, data } }
          : { type: "document", source: { type: "base64", media_type: mediaType, data }, title },
      ],
    };
  });

const requestOf = (question: Question): Anthropic.MessageCreateParamsNonStreaming => ({
  model: question.model,
  max_tokens: question.maxTokens ?? 4096,
  messages: anthropicMessages(question.turns),
  ...(question.reasoning ? { thinking: { type: "enabled", budget_tokens: 2048 } } : {}),
  ...(question.tools
    ? {
        tools: [
          {
            name: weatherTool.name,
            description: weatherTool.description,
            input_schema: {
              ...weatherTool.parameters,
              required: [...weatherTool.parameters.required],
            },
          },
        ],
      }
    : {}),
  ...(question.structured ? { output_config: { format: jsonSchemaOutputFormat(planSchema) } } : {}),
});

const finishes: Readonly<Record<string, Reply["finish"]>> = {
  end_turn: "stop",
  max_tokens: "length",
  tool_use: "calls",
};

function replyOf(message: Anthropic.Message): Reply {
  const parsed: unknown = Reflect.get(message, "parsed_output");
  return {
    text: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: message.content
      .map((block) => (block.type === "thinking" ? block.thinking : ""))
      .join(""),
    calls: message.content.flatMap((block) =>
      block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
    ),
    finish: finishes[message.stop_reason ?? ""] ?? "stop",
    usage: {
      input: message.usage.input_tokens,
      output: message.usage.output_tokens,
      cost: costOf(message.usage),
    },
    native: message.content,
    parsed,
  };
}

async function ask(messages: Anthropic.Messages, question: Question): Promise<Reply> {
  const request = requestOf(question);
  if (!question.stream)
    return replyOf(
      await (question.structured ? messages.parse(request) : messages.create(request)),
    );
  const stream = messages.stream(request);
  if (!question.leaveAtText) return replyOf(await stream.finalMessage());
  stream.on("text", () => stream.abort());
  await stream.done().catch((error: unknown) => {
    if (!(error instanceof Anthropic.APIUserAbortError)) throw error;
  });
  return emptyReply;
}

const adapter = (
  name: string,
  surface: (client: Anthropic) => Anthropic.Messages,
): ClientUnderTest => ({
  name,
  connect: ({ origin, apiKey, retries }) => {
    const messages = surface(new Anthropic({ apiKey, baseURL: origin, maxRetries: retries }));
    return (question) => ask(messages, question);
  },
  failureOf(error) {
    if (!(error instanceof Anthropic.APIError)) throw error;
    return { status: error.status, name: error.constructor.name, message: error.message };
  },
  errorNames: anthropicErrorNames,
  cannot: {
    "cost in streams": "its helper keeps only the fields of usage that it knows",
  },
});

/**
 * The `@anthropic-ai/sdk` package, which sends its key as a bearer and the version of October 2026.
 */
export const anthropicSdk = adapter("@anthropic-ai/sdk", (client) => client.messages);

/**
 * Its beta surface: the same methods with `?beta=true`, the same members as far as questions go.
 */
export const anthropicBeta = adapter(
  "@anthropic-ai/sdk, beta",
  (client) => client.beta.messages as unknown as Anthropic.Messages,
);
