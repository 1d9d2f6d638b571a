import { splitTokens, type OfferedTool, type SimulatedPrompt, type Effort } from "./prompt.ts";
import {
  choiceTokens,
  type SimulatedCall,
  type SimulatedChoice,
  type SimulatedReply,
  type SimulatedUsage,
} from "./dialect.ts";
import { exampleOfSchema } from "./schema-example.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { withoutDirectives } from "./directives.ts";

/** Most tokens that an answer has when neither the request nor a directive says how many. */
const maxOutputTokens = 65_536;

/** The answer to a prompt: the same prompt always has the same answer. */
export function simulate(prompt: SimulatedPrompt): SimulatedReply {
  const choices = Array.from({ length: prompt.choiceCount }, (_, index) =>
    simulateChoice(prompt, index),
  );
  return {
    seed: prompt.seed,
    model: prompt.model,
    createdAtSeconds: prompt.createdAtSeconds,
    choices,
    usage: prompt.directives.no_usage ? undefined : countUsage(prompt, choices),
    directives: prompt.directives,
  };
}

function simulateChoice(prompt: SimulatedPrompt, index: number): SimulatedChoice {
  if (prompt.directives.empty) {
    return { reasoning: [], text: [], calls: [], finish: "stop", stopSequence: undefined };
  }
  const calls = simulateCalls(prompt, index);
  const { text, stopSequence } =
    calls.length > 0
      ? { text: "", stopSequence: undefined }
      : stopAt(answerText(prompt, index), prompt.stop);
  const whole: SimulatedChoice = {
    reasoning: prompt.effort === undefined ? [] : splitTokens(reasoningText(prompt, prompt.effort)),
    text: splitTokens(text),
    calls,
    finish: calls.length > 0 ? "tool_calls" : "stop",
    stopSequence,
  };
  return limited(
    whole,
    prompt.maxTokens ?? Math.max(maxOutputTokens, prompt.directives.tokens ?? 0),
  );
}

/**
 * The tool calls that a prompt gets: one of the first tool, or of the one it names, when its last
 * message is the user's; as many as `sandbox:calls` says, tool after tool; none after tool results.
 */
function simulateCalls(prompt: SimulatedPrompt, choiceIndex: number): SimulatedCall[] {
  if (prompt.toolChoice.mode === "none" || prompt.toolResultText !== undefined) return [];
  const callable = callableTools(prompt);
  if (callable.length === 0) return [];
  const wished = prompt.directives.calls ?? 1;
  const count = prompt.parallelCalls ? wished : Math.min(wished, 1);
  return Array.from({ length: count }, (_, index) => {
    const tool = callable[index % callable.length];
    return tool === undefined ? [] : [simulateCall(tool, `${prompt.seed}${choiceIndex}${index}`)];
  }).flat();
}

function callableTools(prompt: SimulatedPrompt): OfferedTool[] {
  const { toolChoice, tools } = prompt;
  return toolChoice.mode === "named"
    ? tools.filter((tool) => tool.name === toolChoice.name)
    : tools;
}

function simulateCall(tool: OfferedTool, idSuffix: string): SimulatedCall {
  const argumentText =
    tool.kind === "custom"
      ? `simulated input of ${tool.name}`
      : JSON.stringify(exampleOfSchema(objectSchema(tool.schema)));
  return {
    id: `call_${idSuffix}`,
    name: tool.name,
    kind: tool.kind,
    argumentTokens: splitTokens(argumentText),
  };
}

/**
 * Arguments are always an object, also where the tool declares no schema or leaves out its type.
 */
const objectSchema = (schema: unknown): unknown =>
  typeof schema === "object" && schema !== null
    ? { type: "object", ...schema }
    : { type: "object" };

/** Cuts the text off before the first stop sequence in it. */
function stopAt(
  text: string,
  stops: readonly string[],
): { text: string; stopSequence: string | undefined } {
  let end = text.length;
  let stopSequence: string | undefined;
  for (const stop of stops) {
    const at = stop === "" ? -1 : text.indexOf(stop);
    if (at !== -1 && at < end) {
      end = at;
      stopSequence = stop;
    }
  }
  return { text: text.slice(0, end), stopSequence };
}

/** Cuts a choice off after so many tokens. */
function limited(choice: SimulatedChoice, maxTokens: number): SimulatedChoice {
  if (choiceTokens(choice).length <= maxTokens) return choice;
  let left = maxTokens;
  const take = (tokens: string[]): string[] => {
    const taken = tokens.slice(0, left);
    left -= taken.length;
    return taken;
  };
  const reasoning = take(choice.reasoning);
  const text = take(choice.text);
  const calls: SimulatedCall[] = [];
  for (const call of choice.calls) {
    if (left > 0) calls.push({ ...call, argumentTokens: take(call.argumentTokens) });
  }
  return { reasoning, text, calls, finish: "length", stopSequence: undefined };
}

function countUsage(prompt: SimulatedPrompt, choices: readonly SimulatedChoice[]): SimulatedUsage {
  const { inputTokens, directives } = prompt;
  const cachedTokens = Math.min(directives.cached_tokens ?? 0, inputTokens);
  return {
    inputTokens,
    cachedTokens,
    cacheWriteTokens: Math.min(directives.cache_write_tokens ?? 0, inputTokens - cachedTokens),
    outputTokens: choices.reduce((sum, choice) => sum + choiceTokens(choice).length, 0),
    reasoningTokens: choices.reduce((sum, choice) => sum + choice.reasoning.length, 0),
  };
}

const signature = `${brand.productName} sandbox`;

/** The words that every text answer starts with. */
const simulatedPrefix = `[simulated by the ${signature}]`;

/** The whole text of the answer number `index`, before stop sequences and limits. */
function answerText(prompt: SimulatedPrompt, index: number): string {
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
function reasoningText(prompt: SimulatedPrompt, effort: Effort): string {
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
