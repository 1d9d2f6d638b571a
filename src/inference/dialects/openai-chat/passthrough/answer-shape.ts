import type { JsonObject } from "../../../canonical/json.ts";
import { reconcileFinish } from "../../../canonical/response.ts";
import type { OriginalRequest } from "../../shared/passthrough.ts";
import { decodeFinish, encodeFinish, reasoningFields } from "../answer-fields.ts";
import type { ToolNames } from "../call-name.ts";
import { hidesReasoning } from "../request-schema.ts";
import { type Fields, fieldsOf } from "./kept-calls.ts";

/** The parts of a request that determine the form of its answer. */
export interface AnswerShape {
  /**
   * Whether the client calls functions by the older field, whose finish reason is `function_call`.
   */
  legacyFunctions: boolean;
  /** Whether the client asked not to see reasoning (`reasoning.exclude`). */
  hidesReasoning: boolean;
  toolNames: ToolNames;
  /** What ids of calls are made of where neither they nor the answer have one. */
  callSeed: string;
}

/** Returns the form that a chat request asks for. */
export function answerShapeOf({
  body,
  traceId,
}: Pick<OriginalRequest, "body" | "traceId">): AnswerShape {
  // Not the whole body, which a stream would keep in memory.
  const { tools, functions, function_call: functionCall } = body;
  return {
    legacyFunctions: Array.isArray(functions) || (functionCall ?? undefined) !== undefined,
    hidesReasoning: hidesReasoning(body),
    callSeed: traceId,
    toolNames: () => [...namesIn(tools), ...namesIn(functions)],
  };
}

/** Returns the names of a request's tools or functions; some of wrong types are left out. */
const namesIn = (tools: unknown): string[] =>
  (Array.isArray(tools) ? (tools as readonly unknown[]) : []).flatMap((value) => {
    const tool = fieldsOf(value);
    const { name } = fieldsOf(tool?.function) ?? fieldsOf(tool?.custom) ?? tool ?? {};
    return typeof name === "string" ? [name] : [];
  });

/**
 * Returns the value in Unix seconds; undefined where it is no time. Some servers send milliseconds,
 * fractions, 0 or nothing.
 */
export function unixSeconds(created: unknown): number | undefined {
  if (typeof created !== "number" || !(created >= 1)) return undefined;
  return Math.floor(created > latestSeconds ? created / 1_000 : created);
}

/** A time in the year 5138; a greater number is in milliseconds. */
const latestSeconds = 1e11;

/** Returns whether the message or delta calls tools. */
export const callsTools = ({ tool_calls: calls, function_call: call }: Fields): boolean =>
  (Array.isArray(calls) && calls.length > 0) || fieldsOf(call) !== undefined;

/**
 * Returns one of the contract's finish reasons for any word of the provider (`function_call` for
 * clients of that field).
 */
export function finishWord(
  choice: Fields,
  { calls, legacyFunctions }: { calls: boolean; legacyFunctions: boolean },
): unknown {
  return encodeFinish(reconcileFinish(decodeFinish(choice as JsonObject), calls), {
    legacyFunctions,
  }).finish_reason;
}

/** Returns the message or delta without reasoning, in any of its fields. */
export function withoutThoughts(said: Fields): Fields {
  const { content } = said;
  const hasThoughts = Array.isArray(content) && content.some(isThought);
  if (!hasThoughts && !reasoningFields.some((field) => field in said)) return said;
  const rest: Record<string, unknown> = { ...said };
  for (const field of reasoningFields) delete rest[field];
  return hasThoughts ? { ...rest, content: content.filter((part) => !isThought(part)) } : rest;
}

/** Returns whether a part is reasoning, which Mistral sends within the content. */
const isThought = (part: unknown): boolean => fieldsOf(part)?.type === "thinking";
