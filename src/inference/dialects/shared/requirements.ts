import { memberText } from "../../../platform/kernel/json/json-members.ts";
import { isBillingLine } from "../../canonical/message.ts";
import type { ContentKind, RequestNeeds } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import { capFields } from "./output-cap.ts";

type Body = Readonly<Record<string, unknown>>;

/**
 * Reads what requests of one client dialect require of routes and holds. Pure. Every field may have
 * any type, since fields that the gateway does not know are passed on.
 */
export interface RequirementReader {
  /**
   * Whether only routes that allow the output cap may serve; absent means that the cap is lowered.
   */
  readonly capChoosesRoutes?: true;
  /** Returns the output cap that the caller set; undefined when it set none. */
  outputCap(body: Body): number | undefined;
  /** Returns whether the model is to reason; undefined where the request does not say. */
  thinks(body: Body): boolean | undefined;
  /** Returns the tokens that translating a reasoning setting may add to the cap. */
  thoughtTokens(body: Body, thinks: boolean | undefined): number | undefined;
  /**
   * Returns the reasoning budget that an upstream may be sent: a given one, or that of an effort.
   */
  thoughtBudget(body: Body, thoughtTokens: number | undefined): number | undefined;
  /** Returns how many answers the caller asks for. */
  choices(body: Body): number;
  /** Returns whether tools are offered, or a choice among them is made. */
  needsTools(body: Body): boolean;
  /** Returns the requested response format, with its `type`; undefined where none is requested. */
  answerFormat(body: Body): unknown;
  /** Returns the value of a parameter that providers declare; the names are those of chat. */
  parameter(body: Body, name: DeclaredParameter): unknown;
  /**
   * Returns the kinds of input and output beside text; absent where the conversation is in
   * `messages` or `input`, with typed parts.
   */
  kinds?(body: Body): ReadonlySet<ContentKind>;
  /** Returns the effort as a word; absent where the members of the other dialects have it. */
  effort?(body: Body): string | undefined;
}

/**
 * Parameters that providers may or may not support, by their declared names, which are those of
 * chat.
 */
const declaredParameters = [
  "tools",
  "tool_choice",
  "response_format",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "stop",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "min_p",
  "reasoning_effort",
  "reasoning",
  "max_tokens",
  "max_completion_tokens",
] as const;

/** A parameter that providers declare. */
export type DeclaredParameter = (typeof declaredParameters)[number];

/** Returns the names of the declared parameters that a request sets. */
export const parametersOf = (reader: RequirementReader, body: Body): string[] =>
  declaredParameters.filter((name) => isSet(reader.parameter(body, name)));

const noWishes: readonly string[] = [];
const formatWish: readonly string[] = ["response_format"];

/**
 * Returns the names of the parameters that routes should declare. Routes that declare the response
 * format are preferred, but none is left out for lacking it (reasoning rule 6).
 */
export function wishesOf(reader: RequirementReader, body: Body): readonly string[] {
  const format = reader.answerFormat(body);
  if (format === undefined || format === null) return noWishes;
  const { type } = Object(format) as { type?: unknown };
  return type === undefined || type === "text" ? noWishes : formatWish;
}

/** Returns whether a value is set. Null means absent, as everywhere in requests. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/** Returns the value when it is a number. */
export const numberField = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** Returns a member of an object that is a field of the body. */
export const nestedField = (body: Body, field: string, member: string): unknown =>
  typeof body[field] === "object" && body[field] !== null
    ? (body[field] as Body)[member]
    : undefined;

/** Returns whether an array has an entry. */
export const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** The largest budget that Messages upstreams are sent for an effort (`reasoning-rules.ts`). */
const thoughtTokensMost = 32_000;

/** Reads the reasoning settings of OpenAI's dialects, flat or in the `reasoning` object. */
export const openaiThoughts: Pick<RequirementReader, "thinks" | "thoughtTokens" | "thoughtBudget"> =
  {
    thinks(body) {
      const { reasoning } = body;
      const effort = body["reasoning_effort"] ?? nestedField(body, "reasoning", "effort");
      if (effort === "none" || nestedField(body, "reasoning", "enabled") === false) return false;
      return typeof effort === "string" || (typeof reasoning === "object" && reasoning !== null)
        ? true
        : undefined;
    },
    thoughtTokens: (body, thinks) =>
      thinks
        ? (numberField(nestedField(body, "reasoning", "max_tokens")) ?? thoughtTokensMost)
        : undefined,
    thoughtBudget: (_, thoughtTokens) => thoughtTokens,
  };

/**
 * Matches all dialects' names for pictures and sound in the input, which are searched for in the
 * text.
 */
const richInput =
  /"(?:image_url|input_image|input_audio|input_file|image|file|document|inlineData|fileData)"/;

/**
 * Returns whether tokens of a part with a price of its own may be used: those written to a cache,
 * or of pictures and sound.
 */
export function mayUsePart({ body, text }: { body: Body; text: string }, part: string): boolean {
  switch (part) {
    case "cacheWriteTokens":
      // A prompt that is cached by its key is marked for providers that cache what is marked.
      return text.includes('"cache_control"') || text.includes('"prompt_cache_key"');
    case "cacheWriteOneHourTokens":
      return text.includes('"cache_control"') && text.includes('"1h"');
    case "inputAudioTokens":
    case "inputImageTokens":
    case "cacheReadAudioTokens":
    case "cacheReadImageTokens":
      return richInput.test(text);
    default:
      return (
        (Array.isArray(body["modalities"]) &&
          body["modalities"].some((modality) => modality !== "text")) ||
        text.includes('"responseModalities"')
      );
  }
}

/** Bytes of text per token, as an average of common tokenizers. */
const bytesPerToken = 4;
/** The tokens that a picture, a sound or a document costs at least: a guess for holds only. */
const tokensPerBinaryPart = 1_600;
/** The length of base64 below which it is as likely a word. */
const binaryLengthMin = 64;

/**
 * Matches data URLs, the members that hold base64 in clients' dialects, and those that reference a
 * picture or a file.
 */
const binaryMark = /"(?:data:[a-z]+\/|(?:data|file_data|url|image_url|file_url|file_id)"\s*:\s*")/;
const binaryMembers: ReadonlySet<string> = new Set(["data", "file_data"]);
const namingMembers: ReadonlySet<string> = new Set(["url", "image_url", "file_url", "file_id"]);

function bytesOf(value: unknown, key: string): number {
  if (typeof value === "string") {
    const binary =
      value.startsWith("data:") ||
      (binaryMembers.has(key) && value.length >= binaryLengthMin) ||
      namingMembers.has(key);
    return binary ? tokensPerBinaryPart * bytesPerToken : Buffer.byteLength(value);
  }
  if (typeof value !== "object" || value === null) return 4;
  let sum = 2;
  if (Array.isArray(value)) for (const entry of value) sum += bytesOf(entry, key) + 1;
  else
    for (const name in value)
      sum += name.length + 4 + bytesOf((value as Record<string, unknown>)[name], name);
  return sum;
}

/**
 * Estimates the input tokens of a body, for holds and for usage that no provider reported: its
 * length divided by four, with embedded pictures, sounds and documents at a flat rate instead of
 * their base64 length.
 */
export function estimateInputTokens(text: string, body: Readonly<Record<string, unknown>>): number {
  // Bytes rather than characters: in scripts with three bytes per character, each character is
  // about a token.
  const bytes = binaryMark.test(text) ? bytesOf(body, "") : Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}

/** The kinds of content parts in clients' dialects. */
const kindsOfParts: Readonly<Record<string, ContentKind>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  input_audio: "audio-input",
  file: "document-input",
  input_file: "document-input",
  document: "document-input",
};

/**
 * The depth of content: messages, their tool results, and those of Responses; no dialect nests
 * deeper.
 */
const depthMax = 5;

function collect(value: unknown, kinds: Set<ContentKind>, depth = 0): void {
  if (typeof value !== "object" || value === null || depth > depthMax) return;
  if (Array.isArray(value)) {
    for (const entry of value) collect(entry, kinds, depth + 1);
    return;
  }
  const { type, content, output } = value as Body;
  const kind = typeof type === "string" ? kindsOfParts[type] : undefined;
  if (kind !== undefined) kinds.add(kind);
  collect(content, kinds, depth + 1);
  collect(output, kinds, depth + 1);
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Body)[name] : undefined;

/**
 * Returns the effort as a word, from any member in which a dialect has it (contract: "Reasoning
 * rules" 1 and 2).
 */
function effortOf(body: Body): string | undefined {
  const { reasoning, thinking } = body;
  const kind = memberOf(thinking, "type");
  if (kind === "disabled" || memberOf(reasoning, "enabled") === false) return "none";
  const written =
    body["reasoning_effort"] ??
    memberOf(reasoning, "effort") ??
    memberOf(body["output_config"], "effort");
  if (typeof written === "string") return written.toLowerCase();
  return kind === "enabled" ? "high" : undefined;
}

/** The kinds of output by the names that OpenAI's and OpenRouter's clients give them. */
const kindsOfModalities: Readonly<Record<string, ContentKind>> = {
  image: "image-generation",
  audio: "audio-output",
};

/** Adds the kinds of output that `modalities` asks for. */
export function addOutputs(kinds: Set<ContentKind>, modalities: unknown): void {
  if (!Array.isArray(modalities)) return;
  for (const name of modalities) {
    const kind = kindsOfModalities[String(name).toLowerCase()];
    if (kind !== undefined) kinds.add(kind);
  }
}

/** Returns what a request needs, from its body in any client dialect. */
export function needsOf(
  body: Body,
  reader: Pick<RequirementReader, "kinds" | "effort"> = {},
): RequestNeeds {
  if (reader.kinds !== undefined)
    return { kinds: reader.kinds(body), effort: reader.effort?.(body) };
  const kinds = new Set<ContentKind>();
  collect(body["messages"], kinds);
  collect(body["input"], kinds);
  addOutputs(kinds, body["modalities"]);
  return { kinds, effort: effortOf(body) };
}

/** Returns whether a provider is sent the output cap, which some answer with 400. */
export const takesCap = ({ unsupportedFields = [] }: DialectDeviations): boolean =>
  !capFields.some((field) => unsupportedFields.includes(field));

type Fields = Readonly<Record<string, unknown>>;

/** A request of a chat-like dialect: its body as it was received, and parsed. */
interface PromptRequest {
  text: string;
  body: Fields;
}

/** The most characters of a prompt that are hashed: more than any instructions with tools have. */
const hashedCharactersMax = 256 * 1024;

/** The prompt of a chat-like request, as far as the choice of a provider depends on it. */
export class CachedPrompt {
  constructor(private readonly request: PromptRequest) {}

  /**
   * Returns a hash of the prefix that providers cache, where the request marks one, or `isCached`
   * says that they cache what they are sent; undefined where there is none.
   */
  prefixHash(isCached: () => boolean): string | undefined {
    const marked = marksOf(this.request);
    if (marked === "none" && !isCached()) return undefined;
    return prefixHash(this.request.body, { withFirstMessage: marked !== "instructions" });
  }

  /** Returns the provider that sealed the latest reasoning; undefined where none is sealed. */
  sealedBy(): string | undefined {
    const { text } = this.request;
    let start = text.lastIndexOf(sealStart);
    // A quote that is escaped is part of what a text says.
    while (start > 0 && text[start - 1] === "\\") start = text.lastIndexOf(sealStart, start - 1);
    if (start < 0) return carriedBy(text);
    const from = start + sealStart.length;
    const end = text.indexOf(":", from);
    const slug = end < 0 ? "" : text.slice(from, Math.min(end, from + 100));
    return /^[a-z0-9.-]+$/.test(slug) ? slug : undefined;
  }
}

/** The start of a JSON text that the gateway sealed (`sealWithProvenance`), as clients return it. */
const sealStart = '"gw1:';

/** The start of a seal that a Google client returns in base64 (`carrySeals`). */
const carriedStart = '"Z3cxO';

/** Returns the provider of the latest seal in base64; undefined where there is none. */
function carriedBy(text: string): string | undefined {
  const start = text.lastIndexOf(carriedStart);
  if (start < 0) return undefined;
  const head = Buffer.from(text.slice(start + 1, start + 161), "base64").toString("latin1");
  return /^gw1:([a-z0-9.-]+):/.exec(head)?.[1];
}

/**
 * The part of the prompt whose end the request marks for a cache. Within a text the quotes of a
 * marker's name are escaped, so that none is found there.
 */
function marksOf({ text }: PromptRequest): "none" | "instructions" | "messages" {
  if (!hasMark(text)) return "none";
  const said =
    memberText(text, "messages") ?? memberText(text, "input") ?? memberText(text, "contents") ?? "";
  return hasMark(said) ? "messages" : "instructions";
}

const hasMark = (text: string): boolean =>
  text.includes('"cache_control":') || text.includes('"prompt_cache_breakpoint":');

/** Matches a marker; it moves on as a conversation grows. */
const mark =
  /,"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\}|"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\},?/g;

/** Returns a hash of the tools and instructions, and of the first message after them. */
function prefixHash(body: Fields, { withFirstMessage }: { withFirstMessage: boolean }): string {
  const said = listOf(body["messages"] ?? body["input"] ?? body["contents"]);
  const first = said.findIndex((message) => !isInstruction(message));
  const leading = first < 0 ? said : said.slice(0, first + (withFirstMessage ? 1 : 0));
  const parts = [
    body["tools"],
    contentOf(body["system"] ?? body["instructions"] ?? body["systemInstruction"]),
    ...leading.map((message) => contentOf((Object(message) as Fields)["content"] ?? message)),
  ];
  const text = JSON.stringify(parts).replace(mark, "").slice(0, hashedCharactersMax);
  return Bun.hash.wyhash(text).toString(36);
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

const isInstruction = (message: unknown): boolean => {
  const { role } = Object(message) as Fields;
  return role === "system" || role === "developer";
};

/**
 * Returns content as a list of blocks: clients write a text as a list once they mark it. Claude
 * Code's billing line is left out, since it changes with every request.
 */
function contentOf(content: unknown): unknown {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return content;
  return content.filter((block) => {
    const { text } = Object(block) as Fields;
    return !(typeof text === "string" && isBillingLine(text));
  });
}
