import { z } from "zod";
import { readContent } from "../content-text.ts";
import { effortFromName } from "../effort.ts";
import type {
  AnswerFormat,
  OfferedTool,
  ReadPrompt,
  ToolChoice,
  Turn,
  TurnRole,
} from "../prompt.ts";

const toolCall = z.object({
  function: z.object({ arguments: z.string() }).optional(),
  custom: z.object({ input: z.string() }).optional(),
});

const message = z.object({
  role: z.enum(["developer", "system", "user", "assistant", "tool", "function"]),
  content: z.unknown().optional(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
});

const tool = z.object({
  type: z.string(),
  function: z.object({ name: z.string(), parameters: z.unknown().optional() }).optional(),
  custom: z.object({ name: z.string() }).optional(),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.object({
    type: z.string(),
    function: z.object({ name: z.string() }).optional(),
    custom: z.object({ name: z.string() }).optional(),
    allowed_tools: z
      .object({ mode: z.enum(["auto", "required"]), tools: z.array(z.unknown()) })
      .optional(),
  }),
]);

const chatBody = z.object({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  n: z.int().min(1).max(128).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .object({
      type: z.enum(["text", "json_object", "json_schema"]),
      json_schema: z.object({ schema: z.unknown().optional() }).optional(),
    })
    .nullish(),
  reasoning_effort: z.string().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
});

/** The fields of a chat request that the sandbox reads. */
export type ChatBody = z.infer<typeof chatBody>;

/** Checks the fields that the sandbox reads; the others may be anything. */
export const parseChatBody = (body: unknown): ChatBody => chatBody.parse(body);

/** The prompt of a chat request. */
export function readChatPrompt(request: ChatBody): ReadPrompt {
  return {
    model: request.model,
    turns: request.messages.map(readTurn),
    tools: (request.tools ?? []).flatMap(readTool),
    toolChoice: readToolChoice(request.tool_choice),
    parallelCalls: request.parallel_tool_calls ?? true,
    format: readFormat(request.response_format),
    maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    stop: [request.stop ?? []].flat(),
    effort: effortFromName(request.reasoning_effort),
    choiceCount: request.n ?? 1,
  };
}

const turnRoles: Readonly<Record<ChatBody["messages"][number]["role"], TurnRole>> = {
  developer: "system",
  system: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
};

function readTurn(read: ChatBody["messages"][number]): Turn {
  const { text, mediaCount } = readContent(read.content);
  const calls = (read.tool_calls ?? []).map(
    (call) => call.function?.arguments ?? call.custom?.input ?? "",
  );
  return {
    role: turnRoles[read.role],
    text: [text, read.reasoning_content ?? "", ...calls].filter((part) => part !== "").join("\n"),
    mediaCount,
  };
}

function readTool(read: z.infer<typeof tool>): OfferedTool[] {
  if (read.function)
    return [{ name: read.function.name, kind: "function", schema: read.function.parameters }];
  return read.custom ? [{ name: read.custom.name, kind: "custom", schema: undefined }] : [];
}

function readToolChoice(read: ChatBody["tool_choice"]): ToolChoice {
  if (read === null || read === undefined) return { mode: "auto" };
  if (typeof read === "string") return { mode: read };
  const name =
    read.function?.name ?? read.custom?.name ?? firstAllowedTool(read.allowed_tools?.tools);
  return name === undefined ? { mode: "auto" } : { mode: "named", name };
}

function firstAllowedTool(tools: unknown[] | undefined): string | undefined {
  const [first] = tools ?? [];
  const parsed = tool.safeParse(first);
  return parsed.success ? (parsed.data.function?.name ?? parsed.data.custom?.name) : undefined;
}

function readFormat(read: ChatBody["response_format"]): AnswerFormat {
  if (read?.type === "json_schema") return { kind: "schema", schema: read.json_schema?.schema };
  return { kind: read?.type === "json_object" ? "json" : "text" };
}
