import { brand } from "../../../platform/kernel/brand.ts";
import type { Annotation, ImagePart, OpaquePart } from "../../canonical/message.ts";
import {
  reconcileFinish,
  type Finish,
  type GatewayFacts,
  type TokenLogProbability,
  type MeteredUsage,
  type ReportedError,
  type ReasoningEnd,
  type ResponseStart,
  type StreamPart,
  type ToolCallStart,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { SearchReader } from "../shared/extras/web-search.ts";
import { asString } from "../shared/wire-fields.ts";
import {
  CallBuilder,
  type Emit,
  type ItemBuilder,
  type ItemHead,
  type ItemStatus,
  MessageBuilder,
  ReasoningBuilder,
} from "./items/item-builders.ts";
import { errorEvent, eventFrame, failure } from "./errors.ts";
import {
  encodeFinish,
  signatureItem,
  responseRecord,
  searchItem,
  type Ending,
} from "./answer-fields.ts";

/** Returns the part of an upstream's id that ids of items may contain. */
export const idBaseOf = (id: string): string =>
  id
    .replace(/^resp_/, "")
    .replace(/[^a-zA-Z0-9]/g, "")
    .slice(-40) || "0";

/**
 * Encodes canonical parts as Responses events: `response.created`, `response.in_progress`, the
 * items, one terminal event with the whole record, then the gateway's metadata. Sequence numbers
 * have no gaps, and every id is the same from its first event to its last.
 */
export class ResponsesStreamEncoder implements StreamEncoder {
  private readonly builder: OutputBuilder;
  private frames: string[] = [];
  private sequenceNumber = 0;
  private start: ResponseStart | undefined;
  private usage: MeteredUsage | undefined;
  private ended = false;

  constructor(private readonly context: ResponseContext = {}) {
    this.builder = new OutputBuilder({
      emit: this.emit,
      idBase: () => idBaseOf(this.id),
      hidesReasoning: context.request?.reasoning?.exclude === true,
    });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    this.frames = [];
    this.add(part);
    return this.frames;
  }

  private add(part: StreamPart): void {
    switch (part.type) {
      case "response-start":
        this.begin(part);
        break;
      case "usage":
        this.usage = part.usage;
        break;
      case "response-end":
        this.end(part.gateway);
        break;
      case "error":
        this.fail(part.error);
        break;
      // A Responses client asked for one answer.
      case "finish":
        this.begin();
        if (part.choiceIndex === 0) this.builder.end(part.finish);
        break;
      default:
        this.begin();
        if (part.choiceIndex === 0) this.builder.add(part);
    }
  }

  private readonly emit: Emit = (type, members) => {
    const number = this.sequenceNumber;
    this.sequenceNumber += 1;
    this.frames.push(
      typeof members === "string"
        ? `event: ${type}\ndata: {"type":"${type}",${members},"sequence_number":${number}}\n\n`
        : eventFrame(type, { ...members, sequence_number: number }),
    );
  };

  private get id(): string {
    return this.context.id ?? this.start?.id ?? "";
  }

  private now(): number {
    return this.context.nowSeconds?.() ?? this.start?.createdAtSeconds ?? 0;
  }

  private begin(
    start: ResponseStart = { type: "response-start", id: "", model: "", createdAtSeconds: 0 },
  ): void {
    if (this.start !== undefined) return;
    this.start = { ...start, createdAtSeconds: start.createdAtSeconds || this.now() };
    const response = this.record();
    this.emit("response.created", { response });
    this.emit("response.in_progress", { response });
  }

  private end(gateway: GatewayFacts | undefined): void {
    this.begin();
    const ending = encodeFinish(this.builder.end());
    this.ended = true;
    const { metadata, ...others } = gateway ?? {};
    const inside = this.context.metadataInLastEvent === true;
    this.emit(`response.${ending.status}`, {
      response: this.record({ ending, gateway: inside ? gateway : others }),
    });
    if (metadata !== undefined && !inside)
      this.emit(brand.metadataEvent, { [brand.metadataKey]: metadata });
  }

  private fail(error: ReportedError): void {
    this.begin();
    this.ended = true;
    this.emit("error", errorEvent(error));
    const ending: Ending = { status: "failed", error: failure(error), incomplete_details: null };
    this.emit("response.failed", { response: this.record({ ending }) });
  }

  private record({
    ending,
    gateway,
  }: {
    ending?: Ending;
    gateway?: GatewayFacts | undefined;
  } = {}): JsonObject {
    const { start, usage } = this;
    return responseRecord(
      {
        id: this.id,
        model: this.context.model ?? start?.model ?? "",
        createdAtSeconds: start?.createdAtSeconds ?? 0,
        completedAtSeconds: this.now(),
        ending,
        usage,
        serviceTier: start?.serviceTier,
        gateway,
        output: this.builder.output(
          ending === undefined || ending.status === "completed" ? "completed" : "incomplete",
        ),
      },
      this.context,
    );
  }
}

/** The parts of one answer that form its items. */
type OutputPart = Exclude<Extract<StreamPart, { choiceIndex: number }>, { type: "finish" }>;

/** An item that came complete. */
class WholeItem implements ItemBuilder {
  constructor(
    private readonly value: JsonObject,
    { id, outputIndex, emit }: ItemHead,
    steps: string[] = [],
  ) {
    emit?.("response.output_item.added", { output_index: outputIndex, item: value });
    for (const step of steps) emit?.(step, { output_index: outputIndex, item_id: id });
    emit?.("response.output_item.done", { output_index: outputIndex, item: value });
  }

  close(): void {
    // It was sent as a whole.
  }

  item(): JsonObject {
    return this.value;
  }
}

const searchSteps = ["in_progress", "searching", "completed"].map(
  (step) => `response.web_search_call.${step}`,
);

/**
 * Builds output items from the parts of one answer, in the order in which they began. A message and
 * a call end when something else begins, since only then it is known whether they were cut.
 */
export class OutputBuilder {
  finish: Finish | undefined;
  private readonly emit: Emit | undefined;
  private readonly idBase: () => string;
  private readonly hidesReasoning: boolean;
  private readonly items: ItemBuilder[] = [];
  private readonly calls = new Map<number, CallBuilder>();
  private readonly thoughts = new Map<number, ReasoningBuilder>();
  private readonly begun = new Map<
    number,
    Extract<StreamPart, { type: "text-start" | "reasoning-start" }>
  >();
  /** Citations of texts that have not begun; Claude sends them first. */
  private readonly early = new Map<number, Annotation[]>();
  private message: MessageBuilder | undefined;
  private hasRefusal = false;
  private readonly searches = new SearchReader();
  private tokens: TokenLogProbability[] = [];

  constructor({
    emit,
    idBase,
    hidesReasoning,
  }: { emit?: Emit; idBase: () => string; hidesReasoning: boolean }) {
    this.emit = emit;
    this.idBase = idBase;
    this.hidesReasoning = hidesReasoning;
  }

  add(part: OutputPart): void {
    switch (part.type) {
      case "text-start":
        this.begun.set(part.itemIndex, part);
        break;
      case "text-delta":
        this.addText(part.itemIndex, part.text, part.json);
        break;
      case "reasoning-start":
        this.begun.set(part.itemIndex, part);
        break;
      case "reasoning-delta":
        if (part.text !== "") this.thought(part.itemIndex)?.think(part.text, part.summaryIndex);
        break;
      case "reasoning-end":
        this.endThought(part);
        break;
      case "tool-call-start":
        this.startCall(part);
        break;
      case "tool-call-delta":
        this.calls.get(part.itemIndex)?.append(part.arguments);
        break;
      case "tool-call-end": {
        const call = this.calls.get(part.itemIndex);
        if (call !== undefined) call.ended = true;
        break;
      }
      case "refusal-delta":
        this.addRefusal(part.itemIndex, part.refusal);
        break;
      case "annotation":
        this.annotate(part.itemIndex, part.annotation);
        break;
      case "logprobs":
        this.tokens.push(...(part.content ?? []));
        break;
      case "audio-delta":
        if (part.transcript) this.addText(part.itemIndex, part.transcript);
        break;
      case "image":
        this.addImage(part.image);
        break;
      case "opaque":
        this.addOpaque(part.part);
        break;
      case "text-end":
        break;
    }
  }

  /** Ends the answer, once; without a reason it is inferred. */
  end(reported?: Finish): Finish {
    if (this.finish !== undefined) return this.finish;
    const finish = reconcileFinish(reported, this.calls.size > 0);
    if (finish.reason === "refusal" && !this.hasRefusal && finish.explanation)
      this.addRefusal(-1, finish.explanation);
    const cut = encodeFinish(finish).status !== "completed";
    this.items.forEach((item, index) =>
      item.close(cut && index === this.items.length - 1 ? "incomplete" : "completed"),
    );
    return (this.finish = finish);
  }

  /** Returns the items as far as they came; open ones get this status. */
  output(status: ItemStatus): JsonObject[] {
    const last = this.items.length - 1;
    return this.items.map((item, index) => item.item(index === last ? status : "completed"));
  }

  /** Opens an item, after closing a whole item before it. */
  private open<T extends ItemBuilder>(prefix: string, make: (head: ItemHead) => T, id?: string): T {
    this.message?.close("completed");
    this.message = undefined;
    for (const call of this.calls.values()) if (call.ended) call.close("completed");
    const outputIndex = this.items.length;
    const item = make({
      id: id ?? `${prefix}_${this.idBase()}_${outputIndex}`,
      outputIndex,
      emit: this.emit,
    });
    this.items.push(item);
    return item;
  }

  private addText(itemIndex: number, text: string, json?: string): void {
    if (text === "") return;
    const tokens = this.tokens;
    if (tokens.length > 0) this.tokens = [];
    const message = this.messageFor(itemIndex);
    message.text(itemIndex, { text, json, tokens });
    if (this.early.size === 0) return;
    for (const annotation of this.early.get(itemIndex) ?? [])
      message.annotate(itemIndex, annotation);
    this.early.delete(itemIndex);
  }

  private annotate(itemIndex: number, annotation: Annotation): void {
    if (!this.begun.has(itemIndex)) this.message?.annotate(itemIndex, annotation);
    else this.early.set(itemIndex, [...(this.early.get(itemIndex) ?? []), annotation]);
  }

  private addRefusal(itemIndex: number, refusal: string): void {
    if (refusal === "") return;
    this.hasRefusal = true;
    (this.message ??= this.newMessage(undefined)).refusal(itemIndex, refusal);
  }

  private messageFor(itemIndex: number): MessageBuilder {
    const start = this.begun.get(itemIndex);
    this.begun.delete(itemIndex);
    const begins =
      start?.type === "text-start" &&
      (start.startsMessage === true || start.phase !== this.message?.phase);
    if (this.message === undefined || begins)
      this.message = this.newMessage(start?.type === "text-start" ? start.phase : undefined);
    return this.message;
  }

  private newMessage(phase: string | undefined): MessageBuilder {
    return this.open("msg", (head) => new MessageBuilder(head, phase));
  }

  /** Returns the reasoning block at this place, which begins with its first content. */
  private thought(itemIndex: number): ReasoningBuilder | undefined {
    if (this.hidesReasoning) return undefined;
    const known = this.thoughts.get(itemIndex);
    if (known !== undefined) return known;
    const start = this.begun.get(itemIndex);
    const { id, format } = start?.type === "reasoning-start" ? start : {};
    const thought = this.open(
      "rs",
      (head) => new ReasoningBuilder(head, { ...(format !== undefined && { format }) }),
      id,
    );
    this.thoughts.set(itemIndex, thought);
    return thought;
  }

  private endThought({ itemIndex, signature, encrypted, provenance }: ReasoningEnd): void {
    const sealed = signature !== undefined || encrypted !== undefined;
    const thought = sealed ? this.thought(itemIndex) : this.thoughts.get(itemIndex);
    thought?.seal({
      ...(signature !== undefined && { signature }),
      ...(encrypted !== undefined && { encrypted }),
      ...(provenance !== undefined && { provenance }),
    });
    thought?.close();
  }

  /** Starts a call. Its signature is sent in an item before it, which every client replays. */
  private startCall(start: ToolCallStart): void {
    const { signature, provenance, id: callId } = start;
    if (signature !== undefined) {
      const call = { callId, signature, ...(provenance !== undefined && { provenance }) };
      this.open("rs", (head) => new WholeItem(signatureItem(head.id, call), head));
    }
    const prefix = start.kind === "custom" ? "ctc" : "fc";
    this.calls.set(
      start.itemIndex,
      this.open(prefix, (head) => new CallBuilder(head, start)),
    );
  }

  /**
   * Adds an image that the model generated; one that is only an address or an upload has no item
   * here.
   */
  private addImage({ source }: ImagePart): void {
    if (source.type !== "base64") return;
    const { data, mediaType } = source;
    this.open(
      "ig",
      (head) =>
        new WholeItem(
          {
            id: head.id,
            type: "image_generation_call",
            status: "completed",
            result: data,
            output_format: mediaType.replace(/^image\//, ""),
          },
          head,
        ),
    );
  }

  /** Adds a search that a provider of another dialect has run. */
  private addSearch(part: OpaquePart): void {
    const search = this.searches.read(part);
    if (search === undefined) return;
    this.open(
      "ws",
      (head) => new WholeItem({ id: head.id, ...searchItem(search) }, head, searchSteps),
    );
  }

  private addOpaque(part: OpaquePart): void {
    if (part.dialect !== "openai-responses") {
      this.addSearch(part);
      return;
    }
    const id = asString(part.value.id) || undefined;
    this.open(
      "item",
      (head) => new WholeItem(id === undefined ? { id: head.id, ...part.value } : part.value, head),
      id,
    );
  }
}
