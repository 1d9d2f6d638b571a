import { splitTokens, type OfferedTool, type SimulatedPrompt, type Effort } from "./prompt.ts";
import {
  choiceTokens,
  type SimulatedCall,
  type SimulatedChoice,
  type SimulatedReply,
  type SimulatedUsage,
} from "./dialect.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { countText } from "../../platform/kernel/count-text.ts";
import { withoutDirectives } from "./directives.ts";
import { isObject, entriesOf } from "../../platform/kernel/json/json-members.ts";

type Schema = Record<string, unknown>;

interface Walk {
  root: unknown;
  /** The property whose value is being generated; it names the sample texts. */
  name: string;
  depth: number;
}

/** The depth beyond which optional parts are left out, so that recursive schemas end. */
const comfortableDepth = 5;
/** The depth beyond which no value can satisfy the schema any more, so null is used. */
const deepestDepth = 40;

const sampleByFormat: Readonly<Record<string, string>> = {
  "date-time": "2026-01-01T00:00:00Z",
  date: "2026-01-01",
  time: "00:00:00Z",
  duration: "PT1S",
  email: "simulated@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/simulated",
  url: "https://example.com/simulated",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** Texts tried in turn against a `pattern`; a schema that none of them satisfies gets the first. */
const patternSamples = [
  "simulated",
  "SIMULATED",
  "Simulated",
  "s",
  "S",
  "1",
  "12",
  "2026",
  "00000",
  "SIM-1",
  "sim_1",
];

const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/**
 * Returns a value that satisfies a JSON Schema, always the same for the same schema. Reads JSON
 * Schema 2020-12 and its older forms, and Gemini's upper-case type names.
 */
export function exampleOfSchema(schema: unknown): unknown {
  return exampleAt(schema, { root: schema, name: "value", depth: 0 });
}

function exampleAt(schema: unknown, walk: Walk): unknown {
  if (walk.depth > deepestDepth) return null;
  if (!isObject(schema)) return `simulated ${walk.name}`;
  if (typeof schema["$ref"] === "string") {
    return exampleAt(referenced(schema["$ref"], walk.root), { ...walk, depth: walk.depth + 1 });
  }
  for (const fixed of ["const", "default"]) if (fixed in schema) return schema[fixed];
  for (const sampled of ["enum", "examples"]) {
    const [first] = entriesOf(schema[sampled]);
    if (first !== undefined) return first;
  }
  return exampleOfType(combined(schema, walk), walk);
}

function exampleOfType(schema: Schema, walk: Walk): unknown {
  if ("const" in schema || "$ref" in schema || "enum" in schema) return exampleAt(schema, walk);
  switch (typeOf(schema)) {
    case "object":
      return exampleObject(schema, walk);
    case "array":
      return exampleArray(schema, walk);
    case "string":
      return exampleString(schema, walk.name);
    case "number":
      return exampleNumber(schema, 0.5);
    case "integer":
      return exampleNumber(schema, 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return `simulated ${walk.name}`;
  }
}

/** Merges `allOf` and one branch of `anyOf` or `oneOf` into the schema that contains them. */
function combined(schema: Schema, walk: Walk): Schema {
  const union = [...entriesOf(schema["anyOf"]), ...entriesOf(schema["oneOf"])];
  const parts = [
    ...entriesOf(schema["allOf"]),
    ...(union.length > 0 ? [branchOf(union, walk)] : []),
  ];
  if (parts.length === 0) return schema;
  const { allOf: _allOf, anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema;
  return parts.reduce<Schema>((whole, part) => merged(whole, resolved(part, walk)), rest);
}

function resolved(part: unknown, walk: Walk): Schema {
  if (walk.depth > deepestDepth) return {};
  let schema = part;
  for (
    let hops = 0;
    isObject(schema) && typeof schema["$ref"] === "string" && hops < 16;
    hops += 1
  ) {
    schema = referenced(schema["$ref"], walk.root);
  }
  return isObject(schema) ? combined(schema, { ...walk, depth: walk.depth + 1 }) : {};
}

function merged(left: Schema, right: Schema): Schema {
  const properties = { ...(left["properties"] ?? {}), ...(right["properties"] ?? {}) };
  const required = [...entriesOf(left["required"]), ...entriesOf(right["required"])];
  return {
    ...left,
    ...right,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** Returns the first branch with content; deep down the null branch, which ends a recursion. */
function branchOf(union: unknown[], walk: Walk): unknown {
  const isNull = (branch: unknown): boolean => isObject(branch) && typeOf(branch) === "null";
  if (walk.depth > comfortableDepth) return union.find(isNull) ?? union[0];
  return union.find((branch) => !isNull(branch)) ?? union[0];
}

function typeOf(schema: Schema): string | undefined {
  const types = entriesOf(schema["type"]).length > 0 ? entriesOf(schema["type"]) : [schema["type"]];
  const named = types.filter((type) => typeof type === "string").map((type) => type.toLowerCase());
  const declared = named.find((type) => type !== "null") ?? named[0];
  if (declared !== undefined) return declared;
  if ("properties" in schema) return "object";
  return "items" in schema || "prefixItems" in schema ? "array" : undefined;
}

function exampleObject(schema: Schema, walk: Walk): Record<string, unknown> {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = entriesOf(schema["required"]).filter((name) => typeof name === "string");
  const deep = walk.depth > comfortableDepth;
  const names = required.length > 0 || deep ? required : Object.keys(properties);
  return Object.fromEntries(
    names.map((name) => [
      name,
      exampleAt(properties[name], { ...walk, name, depth: walk.depth + 1 }),
    ]),
  );
}

function exampleArray(schema: Schema, walk: Walk): unknown[] {
  const prefix = entriesOf(schema["prefixItems"]);
  const most = numberOf(schema["maxItems"]) ?? Number.POSITIVE_INFINITY;
  const wished = numberOf(schema["minItems"]) ?? (walk.depth > comfortableDepth ? 0 : 1);
  const length = Math.min(Math.max(wished, prefix.length), most);
  return Array.from({ length }, (_, index) =>
    exampleAt(prefix[index] ?? schema["items"], { ...walk, depth: walk.depth + 1 }),
  );
}

function exampleString(schema: Schema, name: string): string {
  const format = schema["format"];
  const formatted = typeof format === "string" ? sampleByFormat[format] : undefined;
  if (formatted !== undefined) return formatted;
  if (typeof schema["pattern"] === "string") return sampleMatching(schema["pattern"]);
  const text = `simulated ${name}`.padEnd(numberOf(schema["minLength"]) ?? 0, "x");
  return text.slice(0, numberOf(schema["maxLength"]) ?? text.length);
}

function sampleMatching(pattern: string): string {
  try {
    const expression = new RegExp(pattern, "u");
    return patternSamples.find((sample) => expression.test(sample)) ?? "simulated";
  } catch {
    // Not a JavaScript pattern: the caller's validator checks it, not the sandbox.
    return "simulated";
  }
}

/** Returns the allowed number nearest to 1; `step` is its distance from an exclusive bound. */
function exampleNumber(schema: Schema, step: number): number {
  const above = numberOf(schema["exclusiveMinimum"]);
  const below = numberOf(schema["exclusiveMaximum"]);
  const least = Math.max(
    numberOf(schema["minimum"]) ?? -Infinity,
    above === undefined ? -Infinity : above + step,
  );
  const most = Math.min(
    numberOf(schema["maximum"]) ?? Infinity,
    below === undefined ? Infinity : below - step,
  );
  const multiple = numberOf(schema["multipleOf"]);
  const nearest = Math.min(Math.max(1, least), most);
  if (multiple === undefined || multiple <= 0) return nearest;
  const upward = Math.ceil(nearest / multiple) * multiple;
  return upward <= most ? upward : Math.floor(nearest / multiple) * multiple;
}

/** Returns the part of the document that `#/a/b` (RFC 6901) names; other references are ignored. */
function referenced(reference: string, root: unknown): unknown {
  const steps = reference
    .replace(/^#\/?/, "")
    .split("/")
    .filter((step) => step !== "");
  return steps.reduce<unknown>((value, step) => {
    const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) return value[Number(key)];
    return isObject(value) ? value[key] : undefined;
  }, root);
}

/** The most tokens of an answer when neither the request nor a directive says how many. */
const maxOutputTokens = 65_536;

/** Returns the answer to a prompt: the same prompt always has the same answer. */
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
 * Returns the tool calls of an answer: of the first tool, or of the one that the prompt names, when
 * its last message is the user's; as many as `sandbox:calls` says, tool after tool; none after tool
 * results.
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
 * Returns the schema of arguments, which are always an object, even where the tool declares no
 * schema or omits its type.
 */
const objectSchema = (schema: unknown): unknown =>
  typeof schema === "object" && schema !== null
    ? { type: "object", ...schema }
    : { type: "object" };

/** Cuts the text before the first stop sequence in it. */
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

/** Cuts a choice after this many tokens. */
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

/** Returns the whole text of the answer number `index`, before stop sequences and limits. */
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

/** Returns reasoning whose length grows with the effort. */
function reasoningText(prompt: SimulatedPrompt, effort: Effort): string {
  return [
    `Simulated reasoning about "${excerpt(prompt.lastUserText, 40)}".`,
    `The prompt has about ${prompt.inputTokens} tokens.`,
    `It offers ${countText(prompt.tools.length, "tool")}.`,
    "The answer will say that it is simulated.",
  ]
    .slice(0, sentencesByEffort[effort])
    .join(" ");
}

/** Returns the text cut or extended to this many tokens. */
function exactly(text: string, tokenCount: number): string {
  const longEnough = text.padEnd(text.length + tokenCount * 4, " and so on");
  return splitTokens(longEnough).slice(0, tokenCount).join("");
}

/** Returns the beginning of a text in one line, without directives. */
function excerpt(text: string, length = 200): string {
  // A prompt can have megabytes, so only the part around the excerpt is read.
  const line = withoutDirectives(text.slice(0, length * 10))
    .replaceAll(/\s+/g, " ")
    .trim();
  return line.length <= length ? line : `${line.slice(0, length).toWellFormed()}...`;
}
