import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, Message, UserPart } from "../../canonical/message.ts";
import { isReasoningDisabled } from "../../canonical/reasoning.ts";
import type { CanonicalRequest, OutputFormat } from "../../canonical/request.ts";
import type { Tool, ToolChoice as CanonicalToolChoice } from "../../canonical/tool.ts";
import {
  type AnswerFormat,
  type Effort,
  effortFromBudget,
  effortFromName,
  type OfferedTool,
  type ReadPrompt,
  type ToolChoice,
  type Turn,
} from "../prompt.ts";

/** The prompt of a request that a dialect has decoded. */
export const readPrompt = (request: CanonicalRequest): ReadPrompt => ({
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

/** The text of a part; undefined for images, sound, files and what only its dialect knows. */
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

/** Tools that the provider runs itself have no schema; the sandbox does not run them. */
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

/** Messages thinks where it is switched on; the other dialects name an effort. */
function readEffort({ dialect, reasoning }: CanonicalRequest): Effort | undefined {
  if (reasoning === undefined || isReasoningDisabled(reasoning)) return undefined;
  const { effort, budgetTokens, enabled, mode } = reasoning;
  if (dialect !== "anthropic-messages") return effortFromName(effort);
  if (mode === "adaptive") return effortFromName(effort ?? "medium");
  return enabled === true ? effortFromBudget(budgetTokens ?? 0) : undefined;
}
