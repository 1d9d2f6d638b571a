import { brand } from "../../platform/kernel/brand.ts";
import { withoutDirectives } from "./directives.ts";
import type { Effort, SimulatedPrompt } from "./prompt.ts";
import { exampleOfSchema } from "./schema-example.ts";
import { splitTokens } from "./tokens.ts";

const signature = `${brand.productName} sandbox`;

/** The words that every text answer starts with. */
const simulatedPrefix = `[simulated by the ${signature}]`;

/** The whole text of the answer number `index`, before stop sequences and limits. */
export function answerText(prompt: SimulatedPrompt, index: number): string {
  const { format, directives, lastUserText, toolResultText } = prompt;
  if (format.kind === "schema") return JSON.stringify(exampleOfSchema(format.schema));
  if (format.kind === "json") {
    return JSON.stringify({ simulated: true, by: signature, prompt: excerpt(lastUserText) });
  }
  const said =
    toolResultText === undefined
      ? `You wrote: "${excerpt(lastUserText)}".`
      : `The tool returned: "${excerpt(toolResultText)}".`;
  const ordinal = index === 0 ? "" : ` This is answer ${index + 1}.`;
  const text = `${simulatedPrefix} ${said} No model was asked; this text was made on this machine.${ordinal}`;
  return directives.tokens === undefined ? text : exactly(text, directives.tokens);
}

const sentencesByEffort: Readonly<Record<Effort, number>> = { low: 1, medium: 2, high: 4 };

/** Reasoning that grows with the effort. */
export function reasoningText(prompt: SimulatedPrompt, effort: Effort): string {
  return [
    `Simulated reasoning about "${excerpt(prompt.lastUserText, 40)}".`,
    `The prompt has about ${prompt.inputTokens} tokens.`,
    `It offers ${prompt.tools.length} tools.`,
    "The answer will say that it is simulated.",
  ]
    .slice(0, sentencesByEffort[effort])
    .join(" ");
}

/** The text cut or filled up to so many tokens. */
function exactly(text: string, tokenCount: number): string {
  const longEnough = text.padEnd(text.length + tokenCount * 4, " and so on");
  return splitTokens(longEnough).slice(0, tokenCount).join("");
}

/** The beginning of a text in one line, without directives. */
function excerpt(text: string, length = 200): string {
  // A prompt can have megabytes; what lies far behind the excerpt is not worth reading.
  const line = withoutDirectives(text.slice(0, length * 10))
    .replaceAll(/\s+/g, " ")
    .trim();
  return line.length <= length ? line : `${line.slice(0, length).toWellFormed()}...`;
}
