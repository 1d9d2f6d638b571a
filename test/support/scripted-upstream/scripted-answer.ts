/** A call of a tool as an upstream makes it. */
export interface ScriptedCall {
  /** Not sent by Gemini, whose older models name no call. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

/**
 * A call whose input is free text, as only Responses know it; elsewhere the text is an argument.
 */
export interface ScriptedTextCall {
  id: string;
  name: string;
  input: string;
}

/** Reasoning as an upstream tells it, with the token that proves where it came from. */
export interface ScriptedReasoning {
  text: string;
  signature: string;
}

/** What an upstream says, whichever dialect it speaks. */
export interface ScriptedAnswer {
  /** Before everything else, where there is one. */
  reasoning?: ScriptedReasoning;
  /** The pieces in which a stream sends the text. */
  text?: readonly string[];
  /** All of them before anything is asked back. */
  calls?: readonly ScriptedCall[];
  /** Behind the calls. */
  textCalls?: readonly ScriptedTextCall[];
  /** What the answer ends for; calls end it as calls do. "stop" unless it says otherwise. */
  finish?: "stop" | "length";
}

/** How one dialect puts an answer on the wire. */
export interface AnswerWriter {
  /** Body of the whole answer. */
  whole(answer: ScriptedAnswer): unknown;
  /** Data of the events of the stream, in their order. */
  events(answer: ScriptedAnswer): unknown[];
}

/** Tokens of every scripted answer, in and out. */
export const scriptedUsage = { input: 11, output: 7 };

/** The calls of an answer where every call has arguments; undefined when it makes none. */
export function callsOf({ calls, textCalls }: ScriptedAnswer): ScriptedCall[] | undefined {
  const wrapped = textCalls?.map(({ input, ...call }) => ({ ...call, arguments: { input } }));
  return calls || wrapped ? [...(calls ?? []), ...(wrapped ?? [])] : undefined;
}

/** The two halves of a call's arguments as JSON text, as streams send them. */
export function argumentPieces(call: ScriptedCall): string[] {
  const text = JSON.stringify(call.arguments);
  const middle = text.length >> 1;
  return [text.slice(0, middle), text.slice(middle)];
}
