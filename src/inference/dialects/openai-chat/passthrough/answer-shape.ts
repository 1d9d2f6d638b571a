import type { OriginalRequest } from "../../shared/passthrough.ts";
import type { ToolNames } from "../call-name.ts";
import { hidesReasoning } from "../request-schema.ts";
import { fieldsOf } from "./kept-calls.ts";

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
