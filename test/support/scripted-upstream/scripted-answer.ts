/** A tool call as an upstream makes it. */
export interface ScriptedCall {
  /** The call's id; not sent by Gemini, whose older models do not identify calls. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

/**
 * A call whose input is free text, which only Responses knows; in other dialects the text is an
 * argument.
 */
export interface ScriptedTextCall {
  id: string;
  name: string;
  input: string;
}

/** Reasoning as an upstream sends it, with the token that proves its origin. */
export interface ScriptedReasoning {
  text: string;
  signature: string;
}

/** What an upstream answers, in whichever dialect it speaks. */
export interface ScriptedAnswer {
  /** Reasoning, sent before everything else. */
  reasoning?: ScriptedReasoning;
  /** The text, in the pieces in which a stream sends it. */
  text?: readonly string[];
  /** Tool calls, all sent before any result is requested. */
  calls?: readonly ScriptedCall[];
  /** Calls with free text, sent after the other calls. */
  textCalls?: readonly ScriptedTextCall[];
  /** Why the answer ends without calls; "stop" when absent. */
  finish?: "stop" | "length";
  /** The tokens that it counts; `scriptedUsage` when absent. */
  usage?: ScriptedUsage;
}

/** Tokens of an answer. */
export interface ScriptedUsage {
  /** All tokens of the prompt. */
  input: number;
  /** Those of them that were read from the prompt cache; 0 when absent. */
  cached?: number;
  output: number;
}

/** A writer of answers in one dialect. */
export interface AnswerWriter {
  /** Returns the body of the whole answer. */
  whole(answer: ScriptedAnswer): unknown;
  /** Returns the data of the stream's events, in order. */
  events(answer: ScriptedAnswer): unknown[];
}

/** Tokens of every scripted answer, in and out. */
export const scriptedUsage: ScriptedUsage = { input: 11, output: 7 };

/**
 * Returns the calls of an answer, those with free text converted to calls with arguments; undefined
 * when it makes none.
 */
export function callsOf({ calls, textCalls }: ScriptedAnswer): ScriptedCall[] | undefined {
  const wrapped = textCalls?.map(({ input, ...call }) => ({ ...call, arguments: { input } }));
  return calls || wrapped ? [...(calls ?? []), ...(wrapped ?? [])] : undefined;
}

/** Returns the two halves of a call's arguments as JSON text, as streams send them. */
export function argumentPieces(call: ScriptedCall): string[] {
  const text = JSON.stringify(call.arguments);
  const middle = text.length >> 1;
  return [text.slice(0, middle), text.slice(middle)];
}
