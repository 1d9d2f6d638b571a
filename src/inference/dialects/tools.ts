import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { CustomTool, ToolKind, ToolCallPart, CanonicalRequest } from "../canonical/request.ts";
import { asObject, asArray, unsupportedContent } from "./wire-fields.ts";
import type { AssistantMessage, Message, ToolMessage } from "../canonical/message.ts";

/**
 * A tool's schema as Claude's servers demand it: an object with properties, even where there are none.
 */
export function typedObjectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  if ("type" in schema && "properties" in schema) return schema;
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  return { type: "object", ...(!composed && { properties: {} }), ...schema };
}

const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const schemaMaps = ["properties", "$defs", "definitions"];

/**
 * The schema with `additionalProperties: false` on every object that does not say, which Anthropic
 * requires of strict ones.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, JsonValue | undefined> = {};
  for (const [key, value] of Object.entries(schema)) closed[key] = closedMember(key, value);
  const isObject =
    schema.type === "object" || (schema.type === undefined && "properties" in schema);
  if (isObject && schema.additionalProperties === undefined) closed.additionalProperties = false;
  return closed;
}

function closedMember(key: string, value: JsonValue | undefined): JsonValue | undefined {
  const list = schemaLists.includes(key) ? asArray(value) : undefined;
  if (list !== undefined) return list.map(closedValue);
  const object = asObject(value);
  if (object === undefined) return value;
  if (key === "items") return closedSchema(object);
  if (!schemaMaps.includes(key)) return value;
  return Object.fromEntries(
    Object.entries(object).map(([name, one]) => [name, one === undefined ? one : closedValue(one)]),
  );
}

const closedValue = (value: JsonValue): JsonValue => {
  const object = asObject(value);
  return object === undefined ? value : closedSchema(object);
};

/**
 * The schema of a tool's arguments as an object with properties, which servers insist on even where
 * there are none.
 */
export function objectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  if (composed || ("type" in schema && "properties" in schema)) return schema;
  return { type: "object", properties: {}, ...schema };
}

/**
 * Refuses what a dialect of one plain answer would silently answer otherwise: several answers, log
 * probabilities, and output that is no text. Throws `GatewayError` `unsupported_content`.
 */
export function refuseOtherAnswers(request: CanonicalRequest): void {
  const { choiceCount = 1, logProbabilities, modalities = [] } = request;
  if (choiceCount > 1)
    throw unsupportedContent(
      "n",
      "asks for several answers, and this model's provider gives one; leave it out.",
    );
  if (logProbabilities !== undefined) {
    throw unsupportedContent(
      "logprobs",
      "asks for log probabilities, which this model's provider does not tell; leave it out.",
    );
  }
  const other = modalities.find((modality) => modality !== "text");
  if (other !== undefined)
    throw unsupportedContent(
      "modalities",
      `asks for ${other}, and this model answers in text; leave it out.`,
    );
}

/** The instruction for JSON, for a model that cannot be held to a format or to this schema. */
export function jsonAdvice(schema: JsonObject | undefined): string {
  const rule =
    schema === undefined ? "" : ` It must follow this JSON Schema: ${JSON.stringify(schema)}`;
  return `Answer with one JSON object and nothing else, without a code fence.${rule}`;
}

/** The tool that a wire name means. */
interface ToolAlias {
  name: string;
  namespace?: string;
  /**
   * A custom tool that went out as a function: its input is the member `input` of the arguments.
   */
  unwrapsInput?: boolean;
}

/**
 * Wire names that differ from what the client called its tools; names that are absent stand for
 * themselves.
 */
export type ToolAliases = ReadonlyMap<string, ToolAlias>;

/** A tool as the client names it. */
export interface NamedTool {
  kind: ToolKind;
  name: string;
  namespace?: string;
}

const illegalCharacters = /[^a-zA-Z0-9_-]/g;

/**
 * Gives tools names that a wire accepts and remembers the way back. The same tool gets the same
 * name in every request, so that a conversation's earlier calls keep fitting and prompt caches stay
 * warm.
 */
export class ToolNamer {
  readonly aliases = new Map<string, ToolAlias>();
  private readonly maxLength: number;
  private readonly wrapsCustom: boolean;

  constructor(options: { maxLength: number; wrapsCustom: boolean }) {
    this.maxLength = options.maxLength;
    this.wrapsCustom = options.wrapsCustom;
  }

  /** True when the tool goes out as a function with the one argument `input`. */
  wraps(tool: { kind: ToolKind }): boolean {
    return this.wrapsCustom && tool.kind === "custom";
  }

  wireName(tool: NamedTool): string {
    const { name, namespace } = tool;
    const wire = legalName(
      namespace === undefined ? name : `${namespace}__${name}`,
      this.maxLength,
    );
    const unwrapsInput = this.wraps(tool);
    if (wire !== name || unwrapsInput) {
      this.aliases.set(wire, {
        name,
        ...(namespace !== undefined && { namespace }),
        ...(unwrapsInput && { unwrapsInput }),
      });
    }
    return wire;
  }
}

/** The name itself where it is legal, otherwise a prefix of it and a hash of the whole. */
export function legalName(name: string, maxLength: number): string {
  const clean = name.replace(illegalCharacters, "_");
  if (clean === name && name.length <= maxLength && name !== "") return name;
  const hash = Bun.hash.crc32(name).toString(16).padStart(8, "0");
  return `${clean.slice(0, maxLength - 9)}_${hash}`;
}

/** Arguments of a custom tool that goes out as a function. */
export const wrapInput = (input: string): string => JSON.stringify({ input });

/**
 * The input of a custom tool out of a wrapping function's arguments; text that wraps nothing is the
 * input itself.
 */
export function unwrapInput(argumentsText: string): string {
  try {
    const parsed = JSON.parse(argumentsText) as unknown;
    const input =
      typeof parsed === "object" && parsed !== null
        ? (parsed as { input?: unknown }).input
        : undefined;
    return typeof input === "string" ? input : argumentsText;
  } catch {
    return argumentsText;
  }
}

/** The arguments of a custom tool that goes out as a function: its whole input in one text. */
export const wrappedParameters: JsonObject = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input." } },
  required: ["input"],
  additionalProperties: false,
};

/**
 * What a custom tool that goes out as a function is described by; its grammar becomes advice, which
 * is reported by `onGrammar`.
 */
export function wrappedDescription(
  { description, format }: CustomTool,
  onGrammar: () => void,
): string | undefined {
  if (format?.type !== "grammar") return description === "" ? undefined : description;
  onGrammar();
  const advice = `The input must follow this ${format.syntax} grammar:\n${format.definition}`;
  return description === undefined ? advice : `${description}\n\n${advice}`;
}

/**
 * Arguments as the object that servers want; text that is no object is passed on under a name of
 * its own.
 */
export function argumentsObject(text: string): JsonObject {
  if (text.trim() === "") return {};
  try {
    return asObject(JSON.parse(text)) ?? { _raw: text };
  } catch {
    return { _raw: text };
  }
}

/**
 * The conversation with every tool call answered once, right after its turn, as every upstream
 * demands: a call that was never answered (the user interrupted) gets an error result, and a result
 * that no call asked for becomes a user's text after them. Conversations that are in order come
 * back as they are.
 */
export function repairToolTurns(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isOfTools)) return messages;
  const repaired: Message[] = [];
  let open = new Map<string, ToolCallPart>();
  let orphans: Message[] = [];
  const closeTurn = (): void => {
    repaired.push(...missingResults(open), ...orphans);
    open = new Map();
    orphans = [];
  };
  for (const message of messages) {
    if (message.role === "tool") {
      if (open.delete(message.toolCallId)) repaired.push(message);
      else orphans.push(orphanAsText(message));
    } else {
      closeTurn();
      if (message.role === "assistant") open = callsById(message);
      repaired.push(message);
    }
  }
  closeTurn();
  return repaired;
}

const isOfTools = (message: Message): boolean =>
  message.role === "tool" ||
  (message.role === "assistant" && message.parts.some((part) => part.type === "tool-call"));

const callsById = (message: AssistantMessage): Map<string, ToolCallPart> =>
  new Map(
    message.parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part] as const] : [])),
  );

const missingResults = (open: ReadonlyMap<string, ToolCallPart>): ToolMessage[] =>
  [...open.values()].map((call) => ({
    role: "tool",
    toolCallId: call.id,
    parts: [{ type: "text", text: "(no result)" }],
    isError: true,
    ...(call.kind === "custom" && { kind: call.kind }),
  }));

function orphanAsText(message: ToolMessage): Message {
  const lead = `Result of the tool call ${message.toolCallId}:`;
  return { role: "user", parts: [{ type: "text", text: lead }, ...message.parts] };
}
