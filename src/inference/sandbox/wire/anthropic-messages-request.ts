import { z } from "zod";
import { readContent } from "../content-text.ts";
import { type Effort, effortFromBudget, effortFromName } from "../effort.ts";
import type { AnswerFormat, ReadPrompt, ToolChoice, Turn } from "../prompt.ts";

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]);

const message = z.object({ role: z.enum(["user", "assistant", "system"]), content });

/** Server tools have a dated type and no schema; the sandbox does not run them. */
const tool = z.object({
  type: z.string().nullish(),
  name: z.string().optional(),
  input_schema: z.unknown().optional(),
});

const tokenBody = z.object({
  model: z.string(),
  messages: z.array(message).min(1),
  system: content.nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .object({
      type: z.enum(["auto", "any", "tool", "none"]),
      name: z.string().optional(),
      disable_parallel_tool_use: z.boolean().nullish(),
    })
    .nullish(),
  thinking: z
    .object({
      type: z.string(),
      budget_tokens: z.int().nullish(),
      display: z.string().nullish(),
    })
    .nullish(),
  output_config: z
    .object({
      effort: z.string().nullish(),
      format: z
        .object({ type: z.literal("json_schema"), schema: z.unknown().optional() })
        .nullish(),
    })
    .nullish(),
});

const messagesBody = tokenBody.extend({
  max_tokens: z.int().min(0),
  stop_sequences: z.array(z.string()).nullish(),
  stream: z.boolean().nullish(),
});

type TokenBody = z.infer<typeof tokenBody>;

/** The fields of a Messages request that the sandbox reads. */
export type MessagesBody = z.infer<typeof messagesBody>;

/** Checks the fields that the sandbox reads; the others may be anything. */
export const parseMessagesBody = (body: unknown): MessagesBody => messagesBody.parse(body);

/** The prompt of a Messages request. */
export function readMessagesPrompt(request: MessagesBody): ReadPrompt {
  return {
    ...readTokenPrompt(request),
    maxTokens: request.max_tokens,
    stop: request.stop_sequences ?? [],
  };
}

/** The prompt of a `count_tokens` request, which says nothing about the answer. */
export const parseCountTokensPrompt = (body: unknown): ReadPrompt =>
  readTokenPrompt(tokenBody.parse(body));

function readTokenPrompt(request: TokenBody): ReadPrompt {
  const system = readContent(request.system);
  const format: AnswerFormat = request.output_config?.format
    ? { kind: "schema", schema: request.output_config.format.schema }
    : { kind: "text" };
  return {
    model: request.model,
    turns: [{ role: "system", ...system }, ...request.messages.flatMap(readTurns)],
    tools: (request.tools ?? []).flatMap((read) =>
      read.name === undefined || read.input_schema === undefined
        ? []
        : [{ name: read.name, kind: "function" as const, schema: read.input_schema }],
    ),
    toolChoice: readToolChoice(request.tool_choice),
    parallelCalls: !(request.tool_choice?.disable_parallel_tool_use ?? false),
    format,
    effort: readEffort(request),
  };
}

/**
 * Tool results stand in user messages, ahead of text that clients add to them; they come last here,
 * because such a message answers the model's calls and is no new question.
 */
function readTurns(read: TokenBody["messages"][number]): Turn[] {
  if (typeof read.content === "string")
    return [{ role: read.role, text: read.content, mediaCount: 0 }];
  const results = read.content.filter((block) => block.type === "tool_result");
  const calls = read.content.filter((block) => block.type === "tool_use");
  const others = read.content.filter((block) => !results.includes(block) && !calls.includes(block));
  const spoken = readContent(others);
  const callText = calls.map((block) => JSON.stringify(block["input"] ?? {})).join("\n");
  const turns: Turn[] = results.map((block) => ({
    role: "tool",
    ...readContent(block["content"]),
  }));
  const text = [spoken.text, callText].filter((part) => part !== "").join("\n");
  const isSpoken = results.length === 0 || others.length > 0;
  return isSpoken ? [{ role: read.role, text, mediaCount: spoken.mediaCount }, ...turns] : turns;
}

function readToolChoice(read: TokenBody["tool_choice"]): ToolChoice {
  if (read?.type === "tool" && read.name !== undefined) return { mode: "named", name: read.name };
  if (read?.type === "any") return { mode: "required" };
  return { mode: read?.type === "none" ? "none" : "auto" };
}

function readEffort({ thinking, output_config: output }: TokenBody): Effort | undefined {
  if (thinking?.type === "adaptive") return effortFromName(output?.effort ?? "medium");
  return thinking?.type === "enabled" ? effortFromBudget(thinking.budget_tokens ?? 0) : undefined;
}
