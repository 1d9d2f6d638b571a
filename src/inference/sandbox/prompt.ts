import { readDirectives, type Directives } from "./directives.ts";

/** Characters (UTF-16 code units) that the sandbox counts as one token. */
const charactersPerToken = 4;

/** Tokens for each image, audio clip or file of a prompt. */
const tokensPerMedium = 256;

/** Returns the tokens of an input text: four characters each, at least 1. */
export const estimateTokens = (text: string): number => tokensOfLength(text.length);

/** Returns the tokens of an input of this many characters, at least 1. */
const tokensOfLength = (length: number): number =>
  Math.max(1, Math.ceil(length / charactersPerToken));

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** Cuts an output text into its tokens, never within a surrogate pair. */
export function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + charactersPerToken, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    tokens.push(text.slice(start, end));
    start = end;
  }
  return tokens;
}

/** The lengths of the sandbox's reasoning. */
export type Effort = "low" | "medium" | "high";

/** The author of a turn; "tool" is a tool's result. */
type TurnRole = "system" | "user" | "assistant" | "tool";

/** A message of a conversation, reduced to what the sandbox reads of it. */
export interface Turn {
  role: TurnRole;
  text: string;
  /** The number of images, audio clips and files beside the text. */
  mediaCount: number;
}

/** A tool that a prompt offers; a custom tool takes free text instead of JSON. */
export interface OfferedTool {
  name: string;
  kind: "function" | "custom";
  /** The JSON Schema of the arguments; undefined when the tool declares none. */
  schema: unknown;
}

/** The tools that the answer may or has to call. */
export type ToolChoice = { mode: "auto" | "none" | "required" } | { mode: "named"; name: string };

/** The form of the answer's text. */
export type AnswerFormat =
  | { kind: "text" }
  | { kind: "json" }
  | { kind: "schema"; schema: unknown };

/**
 * The values that a dialect reads from the body of a request. Absent members are left to the
 * sandbox.
 */
export interface ReadPrompt {
  model: string;
  turns: Turn[];
  tools?: OfferedTool[];
  toolChoice?: ToolChoice;
  /** False when the caller allows at most one tool call. */
  parallelCalls?: boolean;
  format?: AnswerFormat;
  maxTokens?: number | undefined;
  stop?: string[];
  /** Absent means that the answer has no reasoning. */
  effort?: Effort | undefined;
  /** The number of answers, at least 1. */
  choiceCount?: number;
}

/** A request in the form that the simulation works on, from any dialect. */
export interface SimulatedPrompt
  extends Required<Omit<ReadPrompt, "turns" | "maxTokens" | "effort">> {
  /** 16 hexadecimal digits derived from the bytes of the request, from which ids are made. */
  seed: string;
  /** The wall time of the request, in seconds since the epoch. */
  createdAtSeconds: number;
  /** The text of the last user message. */
  lastUserText: string;
  /** The text of the tool results, when the conversation ends with them. */
  toolResultText: string | undefined;
  maxTokens: number | undefined;
  effort: Effort | undefined;
  inputTokens: number;
  directives: Directives;
}

/** The properties of a request beside its body. */
interface RequestFacts {
  seed: string;
  createdAtSeconds: number;
}

/** Completes what a dialect has read to a prompt that can be answered. */
export function completePrompt(read: ReadPrompt, facts: RequestFacts): SimulatedPrompt {
  const spoken = read.turns.filter((turn) => turn.role !== "system");
  const lastUserText = spoken.findLast((turn) => turn.role === "user")?.text ?? "";
  const tools = read.tools ?? [];
  return {
    ...facts,
    model: read.model,
    lastUserText,
    toolResultText: trailingToolText(spoken),
    tools,
    toolChoice: read.toolChoice ?? { mode: "auto" },
    parallelCalls: read.parallelCalls ?? true,
    format: read.format ?? { kind: "text" },
    maxTokens: read.maxTokens,
    stop: read.stop ?? [],
    effort: read.effort,
    choiceCount: read.choiceCount ?? 1,
    inputTokens: countInputTokens(read.turns, tools),
    directives: readDirectives(lastUserText),
  };
}

/** Returns the sandbox's effort for any dialect's name of one; undefined for none. */
export function effortFromName(name: string | null | undefined): Effort | undefined {
  if (name === null || name === undefined || name === "none") return undefined;
  if (name === "minimal" || name === "low") return "low";
  return name === "medium" ? "medium" : "high";
}

/** Returns the effort that a budget of reasoning tokens means. */
export function effortFromBudget(budgetTokens: number): Effort {
  if (budgetTokens <= 1024) return "low";
  return budgetTokens <= 4096 ? "medium" : "high";
}

function trailingToolText(spoken: readonly Turn[]): string | undefined {
  const start = spoken.findLastIndex((turn) => turn.role !== "tool") + 1;
  if (start === spoken.length) return undefined;
  return spoken
    .slice(start)
    .map((turn) => turn.text)
    .join(" ");
}

function countInputTokens(turns: readonly Turn[], tools: readonly OfferedTool[]): number {
  const turnCharacters = turns.reduce((sum, turn) => sum + turn.text.length, 0);
  const toolCharacters = tools.length === 0 ? 0 : JSON.stringify(tools).length;
  const mediaCount = turns.reduce((sum, turn) => sum + turn.mediaCount, 0);
  return tokensOfLength(turnCharacters + toolCharacters) + mediaCount * tokensPerMedium;
}
