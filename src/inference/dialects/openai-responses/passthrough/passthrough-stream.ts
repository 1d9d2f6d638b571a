import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import {
  editMembers,
  editScanned,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import { AlikeTexts } from "../../shared/stream/alike-texts.ts";
import { reportError } from "../../errors.ts";
import { asGatewayFacts } from "../../shared/gateway-facts.ts";
import {
  type EventText,
  inOneLine,
  KeptRelay,
  type OriginalRequest,
  type RelayOptions,
  type SseEvent,
  type ReportedDetails,
  reportedFault,
  type StreamFault,
  unfinishedStream,
} from "../../shared/passthrough.ts";
import { failureFrames } from "../errors.ts";
import {
  endOf,
  isCall,
  type ItemFields,
  itemsOf,
  type ResponseEdits,
  type ResponseFields,
  ResponseMeter,
  responseText,
  withSealedProvenance,
} from "./passthrough-answer.ts";
import { responseRecord } from "../answer-fields.ts";
import { StreamStarts } from "./missing-starts.ts";

/** Options of a Responses relay. */
interface ResponsesRelayOptions extends RelayOptions {
  request: OriginalRequest;
  /** The slug of the provider that answers. */
  providerId: string;
  /** Whether the metadata is part of the last event instead of an event of its own. */
  metadataInLastEvent: boolean;
}

/** The members of an event that are read. */
interface WireEvent extends ItemEvent {
  type?: unknown;
  sequence_number?: unknown;
  response?: (ResponseFields & { created_at?: unknown }) | null;
  item?: ItemFields | null;
  error?: ReportedDetails | string | null;
}

/**
 * Relays a Responses stream in its own dialect: events are passed on unchanged, response objects
 * with the client's id and model, sequence numbers without gaps, and the charge in the terminal
 * event, which a stream that was cut never gets.
 */
export class ResponsesRelay extends KeptRelay<WireEvent, ResponseMeter> {
  upstreamId: string | null = null;
  private readonly options: ResponsesRelayOptions;
  protected readonly meter = new ResponseMeter();
  private readonly delivered = new DeliveredItems();
  private readonly starts: StreamStarts;
  private readonly alike = new AlikeTexts<TextEvent>(() => true);
  private sequenceNumber = 0;
  private createdAtSeconds = 0;
  /** Whether the client received the creation of the response. */
  private isCreated = false;

  constructor(options: ResponsesRelayOptions) {
    super();
    this.options = options;
    this.starts = new StreamStarts(options.shown.id);
  }

  get finished(): boolean {
    return this.ended;
  }

  metered(): MeteredUsage {
    return this.meter.metered(this.options);
  }

  acceptAlike(events: EventText): string {
    const { alike } = this;
    const start = events.position;
    for (
      let taken = alike.take(events, String(this.sequenceNumber));
      taken !== undefined;
      taken = alike.take(events, String(this.sequenceNumber))
    ) {
      const { type, event } = taken.said;
      this.sequenceNumber += 1;
      this.delivered.append(type, event, taken.text);
      this.meter.addDelta(type, taken.text);
    }
    alike.mark(events);
    return events.text.slice(start, events.position);
  }

  accept(sse: SseEvent): string | Promise<string> {
    const event = this.eventOf(sse);
    if (event === undefined) {
      this.alike.learn(undefined);
      return "";
    }
    const type = typeof event.type === "string" ? event.type : (sse.event ?? "");
    const frames = this.acceptEvent(type, { event, data: sse.data });
    this.alike.learnKept(textAlone(type, event), frames);
    return frames;
  }

  private acceptEvent(
    type: string,
    { event, data }: { event: WireEvent; data: string },
  ): string | Promise<string> {
    if (type === "error" || (event.response === undefined && event.error))
      throw reportedFault(detailsOf(event));
    if (type === "response.failed" || type === "response.cancelled") throw this.failedFault(event);
    // Clients throw at a second start.
    if (type === "response.created" && this.isCreated) return "";
    const before = this.missingBefore(type, event);
    if (type === "response.completed" || type === "response.incomplete") {
      const end = this.close(type, { event, data });
      return before === "" ? end : end.then((last) => before + last);
    }
    this.observe(type, event);
    return before + this.frame(type, { event, text: this.edited(event, data) });
  }

  /**
   * Returns the events that must precede this one and that the provider left out: the creation of
   * the response, and the starts of an item and of its part.
   */
  private missingBefore(type: string, event: WireEvent): string {
    if (!type.startsWith("response.")) return "";
    let frames = "";
    if (!this.isCreated && type !== "response.created") frames = this.creation(type, event);
    this.isCreated = true;
    for (const missing of this.starts.before(type, event)) {
      this.observe(missing.type, missing.fields);
      frames += this.ownFrame(missing.type, missing.fields);
    }
    this.starts.note(type, event);
    return frames;
  }

  private creation(type: string, { response }: WireEvent): string {
    const { shown, request } = this.options;
    const told = response?.created_at;
    this.createdAtSeconds = typeof told === "number" ? told : request.nowSeconds();
    const record = responseRecord(
      { ...shown, createdAtSeconds: this.createdAtSeconds, output: [] },
      { requestBody: request.body },
    );
    const names = ["response.created", "response.in_progress"];
    return names
      .filter((name) => name !== type && !(type === "response.queued" && name !== names[0]))
      .map((name) => this.ownFrame(name, { response: record }))
      .join("");
  }

  /** Returns the frame of an event that the provider did not send. */
  private ownFrame(type: string, fields: JsonObject): string {
    return this.frame(type, { event: {}, text: JSON.stringify({ type, ...fields }) });
  }

  async finish(): Promise<string> {
    this.assertContent();
    throw unfinishedStream();
  }

  async endAtCap(): Promise<string> {
    const { shown, request } = this.options;
    const done = this.delivered.unfinished().map(([index, item]) => {
      const text = JSON.stringify({ type: "response.output_item.done", output_index: index, item });
      return this.frame("response.output_item.done", { event: {}, text });
    });
    const response = responseRecord(
      {
        ...shown,
        createdAtSeconds: this.createdAtSeconds,
        output: this.delivered.output(),
        ending: {
          status: "incomplete",
          error: null,
          incomplete_details: { reason: "max_output_tokens" },
        },
      },
      { requestBody: request.body },
    );
    const data = JSON.stringify({ type: "response.incomplete", response });
    const last = await this.close("response.incomplete", { event: { response }, data });
    return withSealedProvenance(done.join(""), this.options.providerId) + last;
  }

  fail(error: GatewayError): string {
    this.ended = true;
    const { request, shown, providerId } = this.options;
    const frames = failureFrames(reportError(error, { traceId: request.traceId }), {
      ...shown,
      createdAtSeconds: this.createdAtSeconds,
      sequenceNumber: this.sequenceNumber,
      output: this.delivered.output(),
      requestBody: request.body,
    });
    return withSealedProvenance(frames.join(""), providerId);
  }

  private failedFault({ response }: WireEvent): StreamFault {
    if (response) this.meter.addResponse(response);
    const error = response?.error;
    return reportedFault(
      typeof error === "object" && error !== null
        ? error
        : { message: "the provider failed on this response" },
    );
  }

  private observe(type: string, event: WireEvent): void {
    const { delta, item, response } = event;
    this.delivered.observe(type, event);
    if (response) this.observeResponse(response);
    if (type.endsWith(".delta")) this.meter.addDelta(type, delta);
    // Calls count when they begin, and tools that the provider runs itself when they are done.
    else if (type === "response.output_item.added" && isCall(item))
      this.meter.addItem({ ...item, arguments: "", input: "" });
    else if (type === "response.output_item.done" && !isCall(item)) this.observeDone(item);
  }

  private observeResponse(response: NonNullable<WireEvent["response"]>): void {
    if (typeof response.id === "string") this.upstreamId ??= response.id;
    if (typeof response.created_at === "number") this.createdAtSeconds = response.created_at;
    this.meter.addResponse(response);
  }

  private observeDone(item: ItemFields | null | undefined): void {
    if (!item || item.type === "message") return;
    // Only the seal of a reasoning block is new: its text came before.
    this.meter.addItem(
      item.type === "reasoning"
        ? { type: "reasoning", encrypted_content: item.encrypted_content }
        : item,
    );
  }

  /** Returns the event's text with the gateway's own members. */
  private edited(event: WireEvent, data: string): string {
    if (!event.response) return withSealedProvenance(data, this.options.providerId);
    return this.withResponse(data, this.edits());
  }

  private withResponse(data: string, edits: ResponseEdits): string {
    const members = scanMembers(data);
    const member = members.findLast(({ key }) => key === "response");
    if (member === undefined) return data;
    const text = responseText(data.slice(member.valueStart, member.valueEnd), edits);
    return editScanned(data, members, new Map([["response", text]]));
  }

  private edits(): ResponseEdits {
    const { shown, providerId, request } = this.options;
    return { ...shown, providerId, requestBody: request.body };
  }

  /** Returns one frame with the next number. */
  private frame(
    type: string,
    { event, text }: { event: { sequence_number?: unknown }; text: string },
  ): string {
    const number = this.sequenceNumber;
    this.sequenceNumber += 1;
    const numbered =
      event.sequence_number === number
        ? text
        : editMembers(text, new Map([["sequence_number", String(number)]]));
    return `event: ${type}\ndata: ${inOneLine(numbered)}\n\n`;
  }

  /**
   * Returns the terminal event, once the answer's cost is known. An end without content is the
   * provider's failure.
   */
  private async close(
    type: string,
    { event, data }: { event: WireEvent; data: string },
  ): Promise<string> {
    const response = event.response ?? {};
    if (this.meter.outputCharacters === 0)
      for (const item of itemsOf(response)) this.meter.addItem(item);
    this.observeResponse({ ...response, status: type.slice("response.".length) });
    const { options } = this;
    this.assertContent();
    const { chargedNano, isByok } = await options.settle();
    const metered = this.metered();
    const metadataText = options.metadataText();
    const gateway = asGatewayFacts({
      chargedNano,
      isByok,
      metered,
      fallback: options.fallback,
      metadataText: options.metadataInLastEvent ? metadataText : undefined,
    });
    const end = { metered, gateway, ...endOf(response, options.request.nowSeconds()) };
    const last = this.frame(type, {
      event,
      text: this.withResponse(data, { ...this.edits(), end }),
    });
    this.ended = true;
    if (options.metadataInLastEvent) return last;
    const text = `{"type":"${brand.metadataEvent}","${brand.metadataKey}":${metadataText}}`;
    return last + this.frame(brand.metadataEvent, { event: {}, text });
  }
}

/** Reads an error event, flat as in OpenAI's reference or with a member of that name. */
function detailsOf({ error, ...flat }: WireEvent): ReportedDetails {
  if (typeof error === "string") return { message: error };
  const { type: _type, ...details } = flat as ReportedDetails & { type?: unknown };
  return error ?? details;
}

interface DeliveredItem {
  item: Record<string, JsonValue | undefined>;
  isDone: boolean;
}

/** The members of an item's event that are read. */
interface ItemEvent {
  output_index?: unknown;
  content_index?: unknown;
  summary_index?: unknown;
  delta?: unknown;
  item?: unknown;
}

/** An event that adds a piece of text to an item. */
interface TextEvent {
  type: string;
  event: ItemEvent;
  text: string;
}

/** Returns the piece of text that an event adds; undefined where it says anything else. */
function textAlone(type: string, event: WireEvent): TextEvent | undefined {
  const { delta } = event;
  const isText = Object.hasOwn(partsOfDelta, type) || Object.hasOwn(fieldOfDelta, type);
  return isText && typeof delta === "string" && event.response === undefined
    ? { type, event, text: delta }
    : undefined;
}

/** The list of the item that a delta adds to, and its entry before it is filled. */
const partsOfDelta: Readonly<
  Record<string, { list: "content" | "summary"; field: "text" | "refusal"; empty: JsonObject }>
> = {
  "response.output_text.delta": {
    list: "content",
    field: "text",
    empty: { type: "output_text", text: "", annotations: [], logprobs: [] },
  },
  "response.refusal.delta": {
    list: "content",
    field: "refusal",
    empty: { type: "refusal", refusal: "" },
  },
  "response.reasoning_text.delta": {
    list: "content",
    field: "text",
    empty: { type: "reasoning_text", text: "" },
  },
  "response.reasoning_summary_text.delta": {
    list: "summary",
    field: "text",
    empty: { type: "summary_text", text: "" },
  },
};

const fieldOfDelta: Readonly<Record<string, "arguments" | "input">> = {
  "response.function_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "input",
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The items of a stream as far as they came, for the record of a response that broke off. */
class DeliveredItems {
  private readonly items = new Map<number, DeliveredItem>();

  observe(type: string, event: ItemEvent): void {
    const index = event.output_index;
    if (typeof index !== "number" || !Number.isInteger(index)) return;
    const isDone = type === "response.output_item.done";
    if (isDone || type === "response.output_item.added")
      this.items.set(index, { item: { ...(Object(event.item) as JsonObject) }, isDone });
    else if (typeof event.delta === "string") this.append(type, event, event.delta);
  }

  /** Adds a piece of text to the item that an event belongs to, if it has begun. */
  append(type: string, event: ItemEvent, delta: string): void {
    const item = this.items.get(Number(event.output_index))?.item;
    if (item === undefined) return;
    // The type comes from the upstream, and objects have inherited members.
    const field = Object.hasOwn(fieldOfDelta, type) ? fieldOfDelta[type] : undefined;
    const part = Object.hasOwn(partsOfDelta, type) ? partsOfDelta[type] : undefined;
    if (field !== undefined) item[field] = textOf(item[field]) + delta;
    if (part === undefined) return;
    const told = part.list === "summary" ? event.summary_index : event.content_index;
    const index = typeof told === "number" && Number.isInteger(told) ? told : 0;
    const list = Array.isArray(item[part.list])
      ? [...(item[part.list] as readonly JsonObject[])]
      : [];
    // A part that an upstream skips has no place: the text goes to the next possible one.
    const at = Math.max(0, Math.min(index, list.length));
    const before = list[at] ?? part.empty;
    list[at] = { ...before, [part.field]: textOf(before[part.field]) + delta };
    item[part.list] = list;
  }

  /** Returns the items in order; unfinished ones are marked as such. */
  output(): JsonObject[] {
    return [...this.items]
      .sort(([a], [b]) => a - b)
      .map(([, { item, isDone }]) => (isDone ? item : { ...item, status: "incomplete" }));
  }

  /** Returns the unfinished items by their place, as far as they came. */
  unfinished(): [number, JsonObject][] {
    const open = [...this.items].sort(([a], [b]) => a - b).filter(([, { isDone }]) => !isDone);
    return open.map(([index, { item }]) => [index, { ...item, status: "incomplete" }]);
  }
}
