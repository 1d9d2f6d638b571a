import type { Directives } from "./directives.ts";

/** A tool call; `argumentTokens` joined is JSON, or free text when the tool is custom. */
export interface SimulatedCall {
  id: string;
  name: string;
  kind: "function" | "custom";
  argumentTokens: string[];
}

/** One answer, as the tokens that make it up. Reasoning comes first, then text or calls. */
export interface SimulatedChoice {
  reasoning: string[];
  text: string[];
  calls: SimulatedCall[];
  finish: "stop" | "length" | "tool_calls";
  /** The stop sequence that ended the text. */
  stopSequence: string | undefined;
}

/**
 * Token counts as a vendor has them: the cached ones are part of the input, reasoning of the
 * output.
 */
export interface SimulatedUsage {
  inputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

/** What every dialect puts into its own words. A pure function of the request. */
export interface SimulatedReply {
  /** 16 hexadecimal digits that ids are made of. */
  seed: string;
  model: string;
  createdAtSeconds: number;
  /** At least one. */
  choices: SimulatedChoice[];
  /** Undefined when the prompt asks for an answer without usage. */
  usage: SimulatedUsage | undefined;
  directives: Directives;
}

/** The tokens of a choice in the order in which a model makes them. */
export const choiceTokens = (choice: SimulatedChoice): string[] => [
  ...choice.reasoning,
  ...choice.text,
  ...choice.calls.flatMap((call) => call.argumentTokens),
];
