import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { CustomTool, CanonicalRequest } from "../../canonical/request.ts";
import type { CanonicalResponse } from "../../canonical/response.ts";
import { asObject, asArray, unsupportedContent } from "./wire-fields.ts";
import type {
  AssistantMessage,
  Message,
  ToolMessage,
  ToolKind,
  ToolCallPart,
} from "../../canonical/message.ts";

/**
 * Returns a tool's schema as Claude's servers require it: an object with properties, even where
 * there are none.
 */
export function typedObjectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  if ("type" in schema && "properties" in schema) return schema;
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  return { type: "object", ...(!composed && { properties: {} }), ...schema };
}

const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const schemaMaps = ["properties", "$defs", "definitions"];

/** Returns whether every object of a schema requires all its properties, and has no others. */
export function isClosed(schema: JsonObject): boolean {
  const required = asArray(schema.required) ?? [];
  const properties = Object.keys(asObject(schema.properties) ?? {});
  const isOpen = schema.type === "object" && schema.additionalProperties !== false;
  return (
    !isOpen && properties.every((name) => required.includes(name)) && within(schema).every(isClosed)
  );
}

/** Returns the schemas directly within a schema. */
const within = (schema: JsonObject): JsonObject[] =>
  [
    schema.items,
    ...schemaLists.flatMap((key) => asArray(schema[key]) ?? []),
    ...schemaMaps.flatMap((key) => Object.values(asObject(schema[key]) ?? {})),
  ]
    .map(asObject)
    .filter((value) => value !== undefined);

/**
 * Returns the schema of a tool's arguments as an object with properties, which servers require even
 * where there are none.
 */
export function objectSchema(schema: JsonObject | undefined): JsonObject {
  if (schema === undefined) return { type: "object", properties: {} };
  const composed = ["$ref", "anyOf", "oneOf", "allOf"].some((key) => key in schema);
  if (composed || ("type" in schema && "properties" in schema)) return schema;
  return { type: "object", properties: {}, ...schema };
}

/** Where Google's clients write what they ask of answers. */
const googleFields = {
  n: "generationConfig.candidateCount",
  logprobs: "generationConfig.responseLogprobs",
  modalities: "generationConfig.responseModalities",
} as const;

/** Returns the field by which a client asked for something of its answers. */
export function answerField(
  { dialect }: CanonicalRequest,
  field: keyof typeof googleFields,
): string {
  if (dialect === "google-generate") return googleFields[field];
  return dialect === "openai-responses" && field === "logprobs" ? "top_logprobs" : field;
}

/**
 * Refuses what a dialect with a single plain answer would silently ignore: several answers, log
 * probabilities, and output other than text. Throws `GatewayError` `unsupported_content`.
 */
export function refuseOtherAnswers(request: CanonicalRequest): void {
  const { choiceCount = 1, logProbabilities, modalities = [] } = request;
  if (choiceCount > 1)
    throw unsupportedContent(
      answerField(request, "n"),
      "asks for several answers, and this model's provider gives one; leave it out.",
    );
  if (logProbabilities !== undefined) {
    throw unsupportedContent(
      answerField(request, "logprobs"),
      "asks for log probabilities, which this model's provider does not tell; leave it out.",
    );
  }
  const other = modalities.find((modality) => modality !== "text");
  if (other !== undefined)
    throw unsupportedContent(
      answerField(request, "modalities"),
      `asks for ${other}, and this model answers in text; leave it out.`,
    );
}

/** Returns the instruction for JSON, for a model that cannot enforce a format or this schema. */
export function jsonAdvice(schema: JsonObject | undefined): string {
  const rule =
    schema === undefined ? "" : ` It must follow this JSON Schema: ${JSON.stringify(schema)}`;
  return `Answer with one JSON object and nothing else, without a code fence.${rule}`;
}

/**
 * Returns the instruction for JSON where OpenAI's dialects ask for it and a conversation of another
 * dialect does not speak of it, since they answer 400 then; undefined for all others.
 */
export const jsonWord = (
  { output, dialect }: Pick<CanonicalRequest, "output" | "dialect">,
  conversation: JsonValue,
): string | undefined =>
  output?.type === "json" &&
  (dialect === "google-generate" || dialect === "anthropic-messages") &&
  !/json/i.test(JSON.stringify(conversation))
    ? jsonAdvice(undefined)
    : undefined;

/** The tool that a wire name means. */
export interface ToolAlias {
  name: string;
  namespace?: string;
  /**
   * Whether it is a custom tool that was sent as a function, so that its input is the member
   * `input` of the arguments.
   */
  unwrapsInput?: boolean;
  /** The client's names of members of the arguments, by their names on the wire. */
  members?: MemberNames;
}

/** New names of members by their present ones; empty where none has to change. */
export type MemberNames = ReadonlyMap<string, string>;

/** Wire names that differ from the client's names of its tools; absent names are the same. */
export type ToolAliases = ReadonlyMap<string, ToolAlias>;

/** Returns whether some tool has members of arguments with other names on the wire. */
export const renamesMembers = (aliases: ToolAliases | undefined): boolean =>
  aliases !== undefined && [...aliases.values()].some(({ members }) => members !== undefined);

/** A tool as the client names it. */
export interface NamedTool {
  kind: ToolKind;
  name: string;
  namespace?: string;
}

const illegalCharacters = /[^a-zA-Z0-9_-]/g;

/**
 * Gives tools names that a wire accepts and remembers the original ones. The same tool gets the
 * same name in every request, so that a conversation's earlier calls still match and prompt caches
 * are used.
 */
export class ToolNamer {
  readonly aliases = new Map<string, ToolAlias>();
  /** The names on the wire of members of arguments, by the tool's name there. */
  private readonly members = new Map<string, MemberNames>();
  /** The names of tools that the upstream runs itself, which the client's own cannot have. */
  private readonly taken = new Set<string>();
  private readonly maxLength: number;
  private readonly wrapsCustom: boolean;

  constructor(options: { maxLength: number; wrapsCustom: boolean }) {
    this.maxLength = options.maxLength;
    this.wrapsCustom = options.wrapsCustom;
  }

  /** Returns whether the tool is sent as a function with the one argument `input`. */
  wraps(tool: { kind: ToolKind }): boolean {
    return this.wrapsCustom && tool.kind === "custom";
  }

  /** Keeps a name for a tool that the upstream runs itself; no other has been named before. */
  reserve(name: string): void {
    this.taken.add(name);
  }

  wireName(tool: NamedTool): string {
    const { name, namespace } = tool;
    const whole = namespace === undefined ? name : `${namespace}__${name}`;
    const wire = legalName(this.taken.has(whole) ? `${whole} ` : whole, this.maxLength);
    const unwrapsInput = this.wraps(tool);
    const members = this.members.get(wire);
    if (wire !== name || unwrapsInput || members !== undefined) {
      this.aliases.set(wire, {
        name,
        ...(namespace !== undefined && { namespace }),
        ...(unwrapsInput && { unwrapsInput }),
        ...(members !== undefined && { members: inverted(members) }),
      });
    }
    return wire;
  }

  /** Notes that members of a tool's arguments have other names on the wire. */
  renameMembers(tool: NamedTool, names: MemberNames): void {
    if (names.size === 0) return;
    this.members.set(this.wireName(tool), names);
    this.wireName(tool);
  }

  /** Returns the names on the wire of the members of a call's arguments that have others there. */
  membersOf(call: NamedTool): MemberNames {
    return this.members.get(this.wireName(call)) ?? noNames;
  }
}

const noNames: MemberNames = new Map();

const inverted = (names: MemberNames): MemberNames =>
  new Map([...names].map(([name, wire]) => [wire, name]));

/** Returns the name itself where it is legal, or else a prefix of it and a hash of the whole. */
export function legalName(name: string, maxLength: number): string {
  const clean = name.replace(illegalCharacters, "_");
  if (clean === name && name.length <= maxLength && name !== "") return name;
  const hash = Bun.hash.crc32(name).toString(16).padStart(8, "0");
  return `${clean.slice(0, maxLength - 9)}_${hash}`;
}

/** Returns a call's id, cut where it is too long, which is the same for its result in every request. */
export const cutCallId = (id: string, maxLength: number): string =>
  id.length <= maxLength ? id : legalName(id, maxLength);

/** Returns the arguments of a custom tool that is sent as a function. */
export const wrapInput = (input: string): string => JSON.stringify({ input });

/**
 * Returns the input of a custom tool from a wrapping function's arguments; text that wraps nothing
 * is the input itself.
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

/** The parameters of a custom tool that is sent as a function: its whole input in one text. */
export const wrappedParameters: JsonObject = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input." } },
  required: ["input"],
  additionalProperties: false,
};

/**
 * Returns the description of a custom tool that is sent as a function. Its grammar becomes advice,
 * which is reported by `onGrammar`.
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
 * Returns arguments as the object that servers require; text that is no object is passed on as a
 * member.
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
 * Gives calls ids that no call before them has. Some servers begin again with every answer (`call_0`),
 * while agents know calls by their ids alone, and Anthropic answers 400 to one that comes
 * twice.
 */
export class CallIds {
  /** How often each id has come, as it was written or as it was given. */
  private readonly counts = new Map<string, number>();

  /** `before` are the ids of a conversation that goes on. */
  constructor(before: readonly string[] = []) {
    for (const id of before) this.counts.set(id, 1);
  }

  /** Returns an answer whose calls have such ids. */
  inAnswer(response: CanonicalResponse): CanonicalResponse {
    const choices = response.choices.map((choice) => ({
      ...choice,
      parts: choice.parts.map((part) =>
        part.type === "tool-call" ? { ...part, id: this.take(part.id) } : part,
      ),
    }));
    return { ...response, choices };
  }

  /** Returns the id itself where it is the first of its kind, and one with a number otherwise. */
  take(id: string): string {
    let free = id;
    while (this.counts.has(free)) {
      const count = (this.counts.get(id) ?? 0) + 1;
      this.counts.set(id, count);
      free = `${id}_${count}`;
    }
    this.counts.set(free, 1);
    return free;
  }
}

/** Returns the ids of the calls of a conversation. */
export const callIdsIn = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) =>
    message.role === "assistant"
      ? message.parts.flatMap((part) => (part.type === "tool-call" ? part.id : []))
      : [],
  );

/**
 * Returns the conversation with every tool call answered once, directly after its turn, as every
 * upstream requires, and with an id of its own. A call without an answer (the user interrupted) gets
 * an error result, and a result without a call becomes a user's text after them. Conversations that
 * are in order are returned as they are.
 */
export function repairToolTurns(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isOfTools)) return messages;
  const ids = new CallIds();
  const repaired: Message[] = [];
  const open: OpenCalls = new Map();
  let orphans: Message[] = [];
  const closeTurn = (): void => {
    repaired.push(...[...open.values()].flat().map(missingResult), ...orphans);
    open.clear();
    orphans = [];
  };
  for (const message of messages) {
    if (message.role === "tool") {
      const call = open.get(message.toolCallId)?.shift();
      if (call === undefined) orphans.push(orphanAsText(message));
      else if (call.id === message.toolCallId) repaired.push(message);
      else repaired.push({ ...message, toolCallId: call.id });
    } else {
      closeTurn();
      repaired.push(message.role === "assistant" ? withOwnIds(message, { ids, open }) : message);
    }
  }
  closeTurn();
  return repaired;
}

/** The calls of a turn that lack their results so far, by the ids that their client wrote. */
type OpenCalls = Map<string, ToolCallPart[]>;

/** Returns a turn whose calls have ids of their own, and notes them as open. */
function withOwnIds(
  message: AssistantMessage,
  { ids, open }: { ids: CallIds; open: OpenCalls },
): AssistantMessage {
  let isChanged = false;
  const parts = message.parts.map((part) => {
    if (part.type !== "tool-call") return part;
    const id = ids.take(part.id);
    const call = id === part.id ? part : { ...part, id };
    isChanged ||= call !== part;
    const alike = open.get(part.id);
    if (alike === undefined) open.set(part.id, [call]);
    else alike.push(call);
    return call;
  });
  return isChanged ? { ...message, parts } : message;
}

const isOfTools = (message: Message): boolean =>
  message.role === "tool" ||
  (message.role === "assistant" && message.parts.some((part) => part.type === "tool-call"));

const missingResult = (call: ToolCallPart): ToolMessage => ({
  role: "tool",
  toolCallId: call.id,
  parts: [{ type: "text", text: "(no result)" }],
  isError: true,
  ...(call.kind === "custom" && { kind: call.kind }),
});

function orphanAsText(message: ToolMessage): Message {
  const lead = `Result of the tool call ${message.toolCallId}:`;
  return { role: "user", parts: [{ type: "text", text: lead }, ...message.parts] };
}
