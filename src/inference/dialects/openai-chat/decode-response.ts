import { GatewayError } from "../../../platform/kernel/errors.ts";
import type {
  AudioOutputPart,
  ImagePart,
  TextPart,
  AssistantPart,
  ToolKind,
  ToolCallPart,
} from "../../canonical/message.ts";
import type { Extensions } from "../../canonical/dialect-id.ts";
import {
  reconcileFinish,
  type CanonicalResponse,
  type Choice,
  type ItemPlace,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import { parseDataUrl } from "../shared/openai-fields.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";
import { unwrapInput } from "../shared/tools.ts";
import {
  decodeAnnotation,
  decodeFinish,
  decodeLogProbabilities,
  decodeReasoning,
  sealsOf,
  thoughtSignature,
} from "./answer-fields.ts";
import { CallName, DeclaredNames } from "./call-name.ts";
import { argumentsText, thinkingText } from "./messages/decode-messages.ts";
import { readError } from "./errors.ts";
import { readUsageOf } from "./usage.ts";

const knownFields = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "service_tier",
  "system_fingerprint",
]);

/**
 * Decodes a chat completion from an upstream; see `UpstreamDialect.decodeResponse`. Fields of wrong
 * types count as absent.
 */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const fields = asObject(body);
  const choices = asArray(fields?.choices);
  if (fields === undefined || choices === undefined) throw notAnAnswer(body);
  const id = asString(fields.id) ?? "";
  const response: CanonicalResponse = {
    id,
    model: asString(fields.model) ?? "",
    createdAtSeconds: asNumber(fields.created) ?? 0,
    choices: choices.map((choice, ordinal) =>
      decodeChoice(asObject(choice) ?? {}, { ordinal, id, context }),
    ),
  };
  const usage = readUsageOf(fields);
  if (usage !== undefined) response.usage = usage;
  const serviceTier = asString(fields.service_tier);
  if (serviceTier !== undefined) response.serviceTier = serviceTier;
  const systemFingerprint = asString(fields.system_fingerprint);
  if (systemFingerprint !== undefined) response.systemFingerprint = systemFingerprint;
  const extensions = decodeExtensions(fields);
  if (extensions !== undefined) response.extensions = extensions;
  return response;
}

function notAnAnswer(body: unknown): GatewayError {
  const fields = asObject(body);
  const reported =
    fields?.error === undefined || fields.error === null ? undefined : readError(502, body);
  return new GatewayError(
    "upstream_error",
    reported?.message ?? "The provider's answer is no chat completion.",
    {
      ...(reported && { metadata: { upstream_message: reported.message } }),
    },
  );
}

function decodeExtensions(fields: JsonObject): Extensions | undefined {
  let unknown: Record<string, JsonValue | undefined> | undefined;
  for (const key in fields) if (!knownFields.has(key)) (unknown ??= {})[key] = fields[key];
  return unknown && { dialect: "openai-chat", fields: unknown };
}

function decodeChoice(
  choice: JsonObject,
  facts: { ordinal: number; id: string; context: DecodeContext },
): Choice {
  const parts = decodeParts(asObject(choice.message) ?? {}, facts);
  const decoded: Choice = {
    index: asNumber(choice.index) ?? facts.ordinal,
    parts,
    finish: reconcileFinish(
      decodeFinish(choice),
      parts.some((part) => part.type === "tool-call"),
    ),
  };
  const logProbabilities = decodeLogProbabilities(choice.logprobs);
  if (logProbabilities !== undefined) decoded.logProbabilities = logProbabilities;
  return decoded;
}

function decodeParts(
  message: JsonObject,
  facts: { id: string; context: DecodeContext },
): AssistantPart[] {
  const text = onlyText(message);
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }];
  const { leading, beforeCall } = decodeReasoning(message, sealsOf(facts.context.providerId));
  const parts: AssistantPart[] = [...leading.map(withoutField), ...decodeContent(message)];
  const refusal = asString(message.refusal);
  if (refusal) parts.push({ type: "refusal", refusal });
  const audio = asObject(message.audio);
  if (audio !== undefined) parts.push(decodeAudio(audio));
  parts.push(...(asArray(message.images) ?? []).flatMap(decodeImage));
  for (const call of decodeCalls(message, facts))
    parts.push(...(beforeCall.get(call.id) ?? []).map(withoutField), call);
  return parts;
}

/** Returns the text of a message that has nothing else, as most have; undefined for any other. */
function onlyText(message: JsonObject): string | undefined {
  const { content } = message;
  if (typeof content !== "string") return undefined;
  for (const key in message)
    if (key !== "content" && key !== "role" && !isNothing(message[key])) return undefined;
  return content;
}

const isNothing = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

/** Removes the name of the field that carried reasoning, which is of no use in an answer. */
function withoutField(part: AssistantPart): AssistantPart {
  if (part.type !== "reasoning") return part;
  const { field: _field, ...rest } = part;
  return rest;
}

function decodeContent(message: JsonObject): AssistantPart[] {
  const { content } = message;
  const values: readonly JsonValue[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (asArray(content) ?? []);
  const parts = values.flatMap(decodePart);
  const annotations = (asArray(message.annotations) ?? []).flatMap(
    (value) => decodeAnnotation(value) ?? [],
  );
  const lastText = parts.findLast((part): part is TextPart => part.type === "text");
  if (lastText !== undefined && annotations.length > 0) lastText.annotations = annotations;
  return parts;
}

function decodePart(value: JsonValue): AssistantPart[] {
  const part = asObject(value);
  if (part === undefined) return [];
  const text = asString(part.text);
  if ((part.type === "text" || part.type === "output_text") && text !== undefined)
    return text === "" ? [] : [{ type: "text", text }];
  if (part.type === "thinking") return [{ type: "reasoning", text: thinkingText(part.thinking) }];
  if (part.type === "image_url") return decodeImage(part);
  return [{ type: "opaque", dialect: "openai-chat", value: part }];
}

const decodeAudio = (audio: JsonObject): AudioOutputPart =>
  withoutUndefined<AudioOutputPart>({
    type: "audio-output",
    id: asString(audio.id) ?? "",
    data: asString(audio.data),
    transcript: asString(audio.transcript),
    expiresAtSeconds: asNumber(audio.expires_at),
  });

/**
 * Decodes images that the model generated, from where OpenRouter and Gemini's compatible surface
 * put them.
 */
export function decodeImage(value: JsonValue): ImagePart[] {
  const url = asString(asObject(asObject(value)?.image_url)?.url);
  if (url === undefined) return [];
  const inline = parseDataUrl(url);
  return [{ type: "image", source: inline ? { type: "base64", ...inline } : { type: "url", url } }];
}

function decodeCalls(
  message: JsonObject,
  facts: { id: string; context: DecodeContext },
): ToolCallPart[] {
  const calls = (asArray(message.tool_calls) ?? []).flatMap((value, ordinal) => {
    const call = asObject(value);
    return call === undefined ? [] : decodeCall(call, { ...facts, ordinal });
  });
  const functionCall = asObject(message.function_call);
  if (functionCall === undefined || calls.length > 0) return calls;
  return decodeCall({ function: functionCall }, { ...facts, ordinal: 0 });
}

function decodeCall(
  call: JsonObject,
  facts: { id: string; ordinal: number; context: DecodeContext },
): ToolCallPart[] {
  const custom = asObject(call.custom);
  const named = custom ?? asObject(call.function);
  const wireName = asString(named?.name);
  if (named === undefined || !wireName) return [];
  const alias = facts.context.toolAliases?.get(wireName);
  const text = custom ? (asString(custom.input) ?? "") : argumentsText(named.arguments);
  const { signature, provenance } = thoughtSignature(
    call.extra_content,
    sealsOf(facts.context.providerId),
  );
  return [
    withoutUndefined<ToolCallPart>({
      type: "tool-call",
      kind: custom || alias?.unwrapsInput === true ? "custom" : "function",
      id:
        asString(call.id) ||
        mintedCallId(facts.id || (facts.context.callSeed ?? ""), facts.ordinal),
      name: alias?.name ?? wireName,
      namespace: alias?.namespace,
      arguments: alias?.unwrapsInput === true ? unwrapInput(text) : text,
      signature,
      provenance,
    }),
  ];
}

/**
 * Returns an id for a call that came without one: the same for the same answer, and different for
 * every call.
 */
export const mintedCallId = (responseId: string, ordinal: number): string =>
  `call_${responseId.replace(/[^a-zA-Z0-9]/g, "").slice(-24)}_${ordinal}`;

interface CallState {
  /** The wire's `index`; absent where a server sends none. */
  index: number | undefined;
  id: string;
  name: CallName;
  kind: ToolKind;
  /** The text so far. */
  text: string;
  /** What the first piece that has it says beyond the protocol, such as Gemini's signature. */
  extraContent: JsonValue | undefined;
  /** Known once the call was announced, which waits for its whole name. */
  place: ItemPlace | undefined;
  ended: boolean;
  /**
   * Whether it is a custom tool that was sent as a function, whose input is known only when the
   * arguments are complete.
   */
  unwraps: boolean;
  /** Whether the server repeats the whole arguments in every delta instead of adding to them. */
  accumulates: boolean | undefined;
}

/** The state of the stream's other parts that calls need. */
interface CallSurroundings {
  nextPlace: () => ItemPlace;
  responseId: () => string;
  context: DecodeContext;
}

/**
 * The tool calls of one choice. Calls are distinguished by `index`, by a new id where servers give
 * every call the same index, or by order where they send neither; deltas of several calls may
 * alternate.
 */
export class ToolCallStream {
  private readonly calls: CallState[] = [];
  private readonly declared: DeclaredNames;

  constructor(private readonly surroundings: CallSurroundings) {
    this.declared = new DeclaredNames(surroundings.context.toolNames);
  }

  /** Whether a call has come, so far as to have a name. */
  get hasCalls(): boolean {
    return this.calls.some((call) => call.name.text !== "");
  }

  read(delta: JsonValue): StreamPart[] {
    const fields = asObject(delta);
    if (fields === undefined) return [];
    const custom = asObject(fields.custom);
    const named = custom ?? asObject(fields.function) ?? {};
    const name = asString(named.name) ?? "";
    const text = textOf(custom ? custom.input : named.arguments);
    const call =
      this.find(fields, name) ?? this.add(fields, custom === undefined ? "function" : "custom");
    const repeats = call.place !== undefined && name !== "" && asString(fields.id) === call.id;
    call.name.add(name, { hasArguments: text !== "" });
    call.extraContent ??= fields.extra_content;
    const fresh = freshText(call, { text, repeats });
    call.text += fresh;
    return call.place === undefined ? this.announceKnown() : deltaOf(call, fresh);
  }

  /** Ends every call that is still open. One whose name may have gone on is announced now. */
  close(): StreamPart[] {
    return this.calls.flatMap((call) =>
      call.place === undefined && call.name.text !== ""
        ? [...this.announce(call), ...endOf(call)]
        : endOf(call),
    );
  }

  private find(fields: JsonObject, name: string): CallState | undefined {
    const index = asNumber(fields.index);
    const id = asString(fields.id);
    const found =
      index === undefined
        ? id
          ? this.calls.find((call) => call.id === id)
          : this.calls.at(-1)
        : this.calls.findLast((call) => call.index === index);
    if (found === undefined || name === "" || found.name.text === "") return found;
    const isAnother = id ? found.id !== id : index === undefined && isOver(found, name);
    return isAnother ? undefined : found;
  }

  private add(fields: JsonObject, kind: ToolKind): CallState {
    const id =
      asString(fields.id) || mintedCallId(this.surroundings.responseId(), this.calls.length);
    const call: CallState = {
      index: asNumber(fields.index),
      id,
      name: new CallName(this.declared),
      kind,
      text: "",
      extraContent: undefined,
      place: undefined,
      ended: false,
      unwraps: false,
      accumulates: undefined,
    };
    this.calls.push(call);
    return call;
  }

  /** Announces the calls whose names are whole, each after those that came before it. */
  private announceKnown(): StreamPart[] {
    const named = this.calls.filter(({ name }) => name.text !== "");
    const waiting = named.findIndex(({ name }) => !name.isWhole);
    return named
      .slice(0, waiting < 0 ? undefined : waiting)
      .flatMap((call) => (call.place === undefined ? this.announce(call) : []));
  }

  /** Announces a call, with what came of it. Earlier calls that are complete end here. */
  private announce(call: CallState): StreamPart[] {
    const { context, nextPlace } = this.surroundings;
    const ended = this.calls.flatMap((other) =>
      other !== call && isWhole(other) ? endOf(other) : [],
    );
    const alias = context.toolAliases?.get(call.name.text);
    call.unwraps = alias?.unwrapsInput === true;
    if (call.unwraps) call.kind = "custom";
    call.place = nextPlace();
    return [
      ...ended,
      {
        type: "tool-call-start",
        ...call.place,
        kind: call.kind,
        id: call.id,
        name: alias?.name ?? call.name.text,
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
        ...thoughtSignature(call.extraContent, sealsOf(context.providerId)),
      },
      ...deltaOf(call, call.text),
    ];
  }
}

/** Returns arguments as text; a few servers send the whole object instead. */
const textOf = (value: unknown): string =>
  typeof value === "string"
    ? value
    : value === undefined || value === null
      ? ""
      : JSON.stringify(value);

/**
 * Returns what a delta adds. Servers that repeat id and name on every delta may repeat the
 * arguments too; the first repetition shows which kind of server it is.
 */
function freshText(call: CallState, { text, repeats }: { text: string; repeats: boolean }): string {
  if (!repeats || call.text === "" || text === "") return text;
  call.accumulates ??= text.startsWith(call.text);
  return call.accumulates && text.startsWith(call.text) ? text.slice(call.text.length) : text;
}

function deltaOf(call: CallState, text: string): StreamPart[] {
  if (call.place === undefined || call.ended || call.unwraps || text === "") return [];
  return [{ type: "tool-call-delta", ...call.place, arguments: text }];
}

function endOf(call: CallState): StreamPart[] {
  if (call.place === undefined || call.ended) return [];
  call.ended = true;
  const end: StreamPart = { type: "tool-call-end", ...call.place };
  return call.unwraps
    ? [{ type: "tool-call-delta", ...call.place, arguments: unwrapInput(call.text) }, end]
    : [end];
}

/**
 * Returns whether a piece with this name and neither id nor index begins another call: the name of
 * the last one is whole and differs, or its arguments are.
 */
const isOver = (call: CallState, name: string): boolean =>
  call.name.isWhole && (call.ended || name !== call.name.text || isWhole(call));

/** Returns whether nothing can follow: a JSON object takes no more text once it is closed. */
function isWhole(call: CallState): boolean {
  if (call.place === undefined || call.ended || (call.kind === "custom" && !call.unwraps))
    return false;
  try {
    JSON.parse(call.text);
    return call.text.trimEnd().endsWith("}");
  } catch {
    return false;
  }
}
