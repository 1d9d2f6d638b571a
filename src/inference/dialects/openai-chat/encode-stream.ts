import {
  reconcileFinish,
  type Finish,
  type GatewayFacts,
  type LogProbabilities,
  type MeteredUsage,
  type ItemPlace,
  type ReasoningEnd,
  type ResponseStart,
  type StreamPart,
  type TextDelta,
  type ToolCallStart,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { Annotation } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { gatewayFields } from "../shared/gateway-facts.ts";
import {
  encodeAnnotation,
  encodeDetail,
  encodeFinish,
  encodeLogProbabilities,
  messageSeparator,
  providerMember,
  signatureField,
} from "./answer-fields.ts";
import { errorFrame } from "./errors.ts";
import { encodeAudio, encodeImage } from "./encode-response.ts";
import { encodeUsage } from "./usage.ts";

const doneFrame = "data: [DONE]\n\n";

/**
 * Encodes canonical parts as chunks: the role first on each choice, one finish for each, then usage
 * and the gateway's own facts on a chunk without choices, then `[DONE]`. Nothing follows an error.
 */
export class ChatStreamEncoder implements StreamEncoder {
  private readonly choices = new Map<number, ChoiceEncoder>();
  private head = "";
  private usage: MeteredUsage | undefined;
  private ended = false;

  constructor(private readonly context: ResponseContext = {}) {
    this.setHead({ type: "response-start", id: "", model: "", createdAtSeconds: 0 });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    switch (part.type) {
      case "response-start":
        this.setHead(part);
        return [];
      case "usage":
        this.usage = part.usage;
        return [];
      case "response-end":
        return this.end(part.gateway);
      case "error":
        this.ended = true;
        return [errorFrame(part.error)];
      case "text-delta":
        return this.text(part);
      default:
        return this.choice(part.choiceIndex).encode(part).map(this.entryFrame);
    }
  }

  /**
   * Encodes text, which most of a stream consists of: where nothing has to accompany it, it is
   * placed between constant texts.
   */
  private text({ choiceIndex, text, json }: TextDelta): string[] {
    const choice = this.choice(choiceIndex);
    const plain = choice.plainText(json ?? JSON.stringify(text), text.length);
    return plain === undefined
      ? choice.text(text).map(this.entryFrame)
      : [`${this.head}[${plain}]}\n\n`];
  }

  private readonly entryFrame = (entry: JsonObject): string =>
    `${this.head}[${JSON.stringify(entry)}]}\n\n`;

  /** Sets the beginning of every chunk, with the same id, time and model throughout. */
  private setHead(start: ResponseStart): void {
    const { id, model } = this.context;
    const { serviceTier, systemFingerprint } = start;
    const head: JsonObject = {
      id: id ?? start.id,
      object: "chat.completion.chunk",
      created: start.createdAtSeconds,
      model: model ?? start.model,
      ...(serviceTier !== undefined && { service_tier: serviceTier }),
      ...(systemFingerprint !== undefined && { system_fingerprint: systemFingerprint }),
    };
    this.head = `data: ${JSON.stringify(head).slice(0, -1)},"choices":`;
  }

  private choice(index: number): ChoiceEncoder {
    let choice = this.choices.get(index);
    if (choice === undefined)
      this.choices.set(index, (choice = new ChoiceEncoder(index, this.context)));
    return choice;
  }

  private end(gateway: GatewayFacts | undefined): string[] {
    this.ended = true;
    const { providerId } = this.context;
    const finishes = [...this.choices.values()].flatMap((choice) => choice.finish());
    const frames = finishes.map(this.entryFrame);
    const members = {
      ...(this.usage && { usage: encodeUsage(this.usage, gateway) }),
      ...(providerId !== undefined && { [providerMember]: providerId }),
      ...gatewayFields(gateway),
    };
    if (Object.keys(members).length > 0)
      frames.push(`${this.head}[],${JSON.stringify(members).slice(1)}\n\n`);
    return [...frames, doneFrame];
  }
}

type ChoicePart = Extract<StreamPart, { choiceIndex: number }>;

interface OpenCall {
  /** The position among the choice's calls, as chat counts them. */
  index: number;
  start: ToolCallStart;
  hasText: boolean;
}

/**
 * Encodes one choice of a stream: each method returns the entries of `choices` for its part,
 * usually one.
 */
class ChoiceEncoder {
  private readonly legacyFunctions: boolean;
  private readonly hidesReasoning: boolean;
  private readonly calls = new Map<number, OpenCall>();
  private readonly thoughts = new Map<number, JsonObject>();
  private pendingProbabilities: LogProbabilities | undefined;
  /** Seals of reasoning behind a text or a call, which wait for the id of the call that they precede. */
  private heldSeals: { seal: ReasoningPart; names: JsonObject }[] = [];
  private pendingSeparator = "";
  private hasRole = false;
  /** The characters of text so far, and where the latest text began. */
  private saidLength = 0;
  private textStart = 0;
  private isInText = false;
  /** Citations of the whole text that has not ended. */
  private unplaced: Annotation[] = [];
  private hasRefusal = false;
  private finished = false;

  constructor(
    private readonly index: number,
    { request }: ResponseContext,
  ) {
    this.legacyFunctions = request?.legacyFunctions === true;
    this.hidesReasoning = request?.reasoning?.exclude === true;
  }

  encode(part: ChoicePart): JsonObject[] {
    if (this.finished) return [];
    switch (part.type) {
      case "text-start":
        return this.startText(part.startsMessage === true);
      case "text-delta":
        return this.text(part.text);
      case "text-end":
        return this.endText();
      case "opaque":
        return [];
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.hidesReasoning ? [] : this.reasoning(part);
      case "tool-call-start":
        return this.startCall(part);
      case "tool-call-delta":
        return this.callText(part, part.arguments);
      case "tool-call-end":
        return this.endCall(part);
      case "refusal-delta":
        return this.refusal(part.refusal);
      case "annotation":
        return this.annotate(part.annotation);
      case "logprobs":
        this.keepProbabilities(part);
        return [];
      case "audio-delta":
        return this.delta({ audio: encodeAudio(part) });
      case "image":
        return encodeImage(part.image).flatMap((image) => this.delta({ images: [image] }));
      case "finish":
        return this.finish(part.finish);
    }
  }

  /** Ends the choice, once; without a reason it is inferred. */
  finish(reported?: Finish): JsonObject[] {
    if (this.finished) return [];
    const finish = reconcileFinish(reported, this.calls.size > 0);
    const refusal =
      finish.reason === "refusal" && !this.hasRefusal ? finish.explanation : undefined;
    const entries = [
      ...this.endText(),
      ...this.releaseSeals(),
      ...(refusal === undefined ? [] : this.delta({ refusal })),
      ...(this.hasRole ? [] : this.delta({})),
    ];
    this.finished = true;
    return [
      ...entries,
      this.entry({}, encodeFinish(finish, { legacyFunctions: this.legacyFunctions })),
    ];
  }

  private startText(startsMessage: boolean): JsonObject[] {
    if (startsMessage && this.saidLength > 0) this.pendingSeparator = messageSeparator;
    this.textStart = this.saidLength + this.pendingSeparator.length;
    this.isInText = true;
    return [];
  }

  private endText(): JsonObject[] {
    this.isInText = false;
    const citations = this.unplaced;
    this.unplaced = [];
    return citations.flatMap((annotation) => this.annotate(annotation));
  }

  /** Encodes a citation. One of a whole text waits for the text's end. */
  private annotate(annotation: Annotation): JsonObject[] {
    if (this.isInText && annotation.type === "url" && annotation.endIndex === undefined) {
      this.unplaced.push(annotation);
      return [];
    }
    return encodeAnnotation(annotation, [this.textStart, this.saidLength]).flatMap((citation) =>
      this.delta({ annotations: [citation] }),
    );
  }

  /**
   * Returns the JSON text of the single entry of a text, which is given in JSON with its length;
   * undefined where the entry has more than the text.
   */
  plainText(json: string, length: number): string | undefined {
    if (
      !this.hasRole ||
      this.finished ||
      this.pendingSeparator !== "" ||
      this.pendingProbabilities !== undefined
    )
      return undefined;
    this.saidLength += length;
    return `{"index":${this.index},"delta":{"content":${json}},"logprobs":null,"finish_reason":null}`;
  }

  text(text: string): JsonObject[] {
    if (this.finished) return [];
    const content = this.pendingSeparator + text;
    this.saidLength += content.length;
    this.pendingSeparator = "";
    return this.delta({ content });
  }

  private refusal(refusal: string): JsonObject[] {
    this.hasRefusal = true;
    return this.delta({ refusal });
  }

  /**
   * Encodes reasoning text as it comes, under each of the names that clients read. A seal follows
   * in an entry of its own, which clients merge by `index` (OpenRouter).
   */
  private reasoning(part: Extract<ChoicePart, { type: `reasoning-${string}` }>): JsonObject[] {
    if (part.type === "reasoning-end") return this.endThought(part);
    if (part.type === "reasoning-start") {
      const { id, format } = part;
      const index = this.thoughts.size;
      this.thoughts.set(part.itemIndex, {
        ...(id !== undefined && { id }),
        ...(format !== undefined && { format }),
        index,
      });
      return [];
    }
    const { text, summaryIndex } = part;
    const piece =
      summaryIndex === undefined
        ? { type: "reasoning.text", text }
        : { type: "reasoning.summary", summary: text, summary_index: summaryIndex };
    return this.delta({
      reasoning_content: text,
      reasoning: text,
      reasoning_details: [{ ...piece, ...this.thoughtNames(part.itemIndex) }],
    });
  }

  private endThought({ itemIndex, signature, encrypted, provenance }: ReasoningEnd): JsonObject[] {
    if (signature === undefined && encrypted === undefined) return [];
    const seal: ReasoningPart = {
      type: "reasoning",
      ...(signature !== undefined && { signature }),
      ...(encrypted !== undefined && { encrypted }),
      ...(provenance !== undefined && { provenance }),
    };
    this.heldSeals.push({ seal, names: this.thoughtNames(itemIndex) });
    return this.calls.size > 0 || this.saidLength > 0 ? [] : this.releaseSeals();
  }

  private releaseSeals(callId?: string): JsonObject[] {
    const details = this.heldSeals.flatMap(({ seal, names }) =>
      encodeDetail(seal, { ...names, ...(callId !== undefined && { tool_call_id: callId }) }),
    );
    this.heldSeals = [];
    return details.length === 0 ? [] : this.delta({ reasoning_details: details });
  }

  /** Returns the members that all entries of one block share. */
  private thoughtNames(itemIndex: number): JsonObject {
    let names = this.thoughts.get(itemIndex);
    if (names === undefined) this.thoughts.set(itemIndex, (names = { index: this.thoughts.size }));
    return names;
  }

  private startCall(start: ToolCallStart): JsonObject[] {
    const call = { index: this.calls.size, start, hasText: false };
    this.calls.set(start.itemIndex, call);
    const { id, name, kind } = start;
    const thoughts = this.releaseSeals(id);
    // The older field holds one call; a second one cannot be sent.
    if (this.legacyFunctions)
      return call.index > 0
        ? thoughts
        : [...thoughts, ...this.delta({ function_call: { name, arguments: "" } })];
    const named =
      kind === "custom" ? { custom: { name, input: "" } } : { function: { name, arguments: "" } };
    return [
      ...thoughts,
      ...this.delta({
        tool_calls: [{ index: call.index, id, type: kind, ...named, ...signatureField(start) }],
      }),
    ];
  }

  private callText({ itemIndex }: ItemPlace, text: string): JsonObject[] {
    const call = this.calls.get(itemIndex);
    if (call === undefined || text === "" || (this.legacyFunctions && call.index > 0)) return [];
    call.hasText = true;
    if (this.legacyFunctions) return this.delta({ function_call: { arguments: text } });
    const added =
      call.start.kind === "custom"
        ? { custom: { input: text } }
        : { function: { arguments: text } };
    return this.delta({ tool_calls: [{ index: call.index, ...added }] });
  }

  /** Ends a call. A function without arguments gets empty ones, since clients parse the text. */
  private endCall(place: ItemPlace): JsonObject[] {
    const call = this.calls.get(place.itemIndex);
    return call === undefined || call.hasText || call.start.kind === "custom"
      ? []
      : this.callText(place, "{}");
  }

  private keepProbabilities({ content, refusal }: LogProbabilities): void {
    const pending = this.pendingProbabilities;
    this.pendingProbabilities = {
      ...((pending?.content ?? content) && {
        content: [...(pending?.content ?? []), ...(content ?? [])],
      }),
      ...((pending?.refusal ?? refusal) && {
        refusal: [...(pending?.refusal ?? []), ...(refusal ?? [])],
      }),
    };
  }

  /** Returns an entry with this delta, preceded by one with the role where that was not sent. */
  private delta(delta: JsonObject): JsonObject[] {
    if (this.hasRole) return [this.entry(delta)];
    this.hasRole = true;
    const role = this.entryOf(
      { role: "assistant", content: "" },
      { logprobs: null, finish_reason: null },
    );
    return Object.keys(delta).length === 0 ? [role] : [role, this.entry(delta)];
  }

  /** Returns an entry with the log probabilities that were waiting for it. */
  private entry(delta: JsonObject, ending: JsonObject = { finish_reason: null }): JsonObject {
    const waits =
      this.pendingProbabilities !== undefined &&
      ("content" in delta || "refusal" in delta || this.finished);
    const logprobs =
      waits && this.pendingProbabilities ? encodeLogProbabilities(this.pendingProbabilities) : null;
    if (waits) this.pendingProbabilities = undefined;
    return this.entryOf(delta, { logprobs, ...ending });
  }

  private entryOf(delta: JsonObject, ending: JsonObject): JsonObject {
    return { index: this.index, delta, ...ending };
  }
}

interface WholeChoice {
  message?: { tool_calls?: unknown };
  finish_reason?: unknown;
}

/**
 * Converts a JSON body to the equivalent events; an unreadable body becomes an unreadable event.
 */
export function eventsOfWhole(text: string): string {
  let body: unknown;
  try {
    const parsed: unknown = JSON.parse(text);
    body = Array.isArray(parsed) ? parsed[0] : parsed;
  } catch {
    return `data: ${text.replace(/[\r\n]+/g, " ").trimStart()}\n\n`;
  }
  const { choices, usage, ...envelope } = Object(body) as {
    choices?: unknown;
    usage?: unknown;
  } & Record<string, unknown>;
  if (!Array.isArray(choices)) return event(body);
  const chunk = { ...envelope, object: "chat.completion.chunk" };
  const whole = choices.map((choice) => Object(choice) as WholeChoice);
  const deltas = whole.map(({ message, ...choice }, index) => ({
    index,
    ...choice,
    delta: deltaOf(message),
    finish_reason: null,
  }));
  const finishes = whole.map(({ message: _, finish_reason: reason, ...choice }, index) => ({
    index,
    ...choice,
    delta: {},
    finish_reason: reason,
  }));
  const usageEvent = usage === undefined ? "" : event({ ...chunk, choices: [], usage });
  return `${event({ ...chunk, choices: deltas })}${event({ ...chunk, choices: finishes })}${usageEvent}data: [DONE]\n\n`;
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** Returns a message as one delta; tool calls get the index by which streams number them. */
function deltaOf(message: WholeChoice["message"]): unknown {
  const calls = message?.tool_calls;
  if (!Array.isArray(calls)) return message ?? {};
  return { ...message, tool_calls: calls.map((call, index) => ({ index, ...Object(call) })) };
}
