import type { JsonObject } from "../canonical/json.ts";
import type { CustomTool } from "../canonical/tool.ts";

/** The arguments of a custom tool that goes out as a function: its whole input in one text. */
export const wrappedParameters: JsonObject = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input." } },
  required: ["input"],
  additionalProperties: false,
};

/** What a custom tool that goes out as a function is described by; its grammar becomes advice, which is told by `onGrammar`. */
export function wrappedDescription(
  { description, format }: CustomTool,
  onGrammar: () => void,
): string | undefined {
  if (format?.type !== "grammar") return description === "" ? undefined : description;
  onGrammar();
  const advice = `The input must follow this ${format.syntax} grammar:\n${format.definition}`;
  return description === undefined ? advice : `${description}\n\n${advice}`;
}
