import { z } from "zod";
import { readContent } from "../content-text.ts";
import { InvalidRequest } from "../dialect.ts";
import { effortFromName } from "../effort.ts";
import type { AnswerFormat, OfferedTool, ReadPrompt, ToolChoice, Turn } from "../prompt.ts";

const item = z.looseObject({ type: z.string().optional(), role: z.string().optional() });

const toolChoice = z.union([
  z.string(),
  z.looseObject({ type: z.string(), name: z.string().optional() }),
]);

const responsesBody = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(item)]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  tools: z.array(z.looseObject({ type: z.string(), name: z.string().optional() })).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  text: z
    .looseObject({
      format: z.looseObject({ type: z.string(), schema: z.unknown().optional() }).nullish(),
    })
    .nullish(),
  include: z.array(z.string()).nullish(),
});

/** A Responses request; fields that the sandbox does not read are kept, to be echoed. */
export type ResponsesBody = z.infer<typeof responsesBody>;

/** Checks the fields that the sandbox reads. */
export function parseResponsesBody(body: unknown): ResponsesBody {
  const request = responsesBody.parse(body);
  if (request.previous_response_id) {
    throw new InvalidRequest(
      `Previous response with id '${request.previous_response_id}' not found: ` +
        "the sandbox stores none.",
    );
  }
  return request;
}

/** The prompt of a Responses request. */
export function readResponsesPrompt(request: ResponsesBody): ReadPrompt {
  const spoken: Turn[] =
    typeof request.input === "string"
      ? [{ role: "user", text: request.input, mediaCount: 0 }]
      : request.input.map(readItem);
  const tools = (request.tools ?? []).flatMap(readTool);
  return {
    model: request.model,
    turns: [{ role: "system", text: request.instructions ?? "", mediaCount: 0 }, ...spoken],
    tools,
    toolChoice: readToolChoice(request.tool_choice),
    parallelCalls: request.parallel_tool_calls ?? true,
    format: readFormat(request.text?.format),
    maxTokens: request.max_output_tokens ?? undefined,
    effort: effortFromName(request.reasoning?.effort),
  };
}

function readItem(read: z.infer<typeof item>): Turn {
  const type = read.type ?? "message";
  if (type === "message") {
    const role = read.role === "user" || read.role === "assistant" ? read.role : "system";
    return { role, ...readContent(read["content"]) };
  }
  if (type.endsWith("_output")) return { role: "tool", ...readContent(read["output"]) };
  const spoken = read["arguments"] ?? read["input"] ?? read["summary"];
  return { role: "assistant", ...readContent(spoken) };
}

function readTool(read: NonNullable<ResponsesBody["tools"]>[number]): OfferedTool[] {
  if (read.name === undefined) return [];
  if (read.type === "function")
    return [{ name: read.name, kind: "function", schema: read["parameters"] }];
  return read.type === "custom" ? [{ name: read.name, kind: "custom", schema: undefined }] : [];
}

function readToolChoice(read: ResponsesBody["tool_choice"]): ToolChoice {
  if (typeof read === "object" && read?.name !== undefined)
    return { mode: "named", name: read.name };
  return { mode: read === "none" || read === "required" ? read : "auto" };
}

function readFormat(format: NonNullable<ResponsesBody["text"]>["format"]): AnswerFormat {
  if (format?.type === "json_schema") return { kind: "schema", schema: format.schema };
  return { kind: format?.type === "json_object" ? "json" : "text" };
}
