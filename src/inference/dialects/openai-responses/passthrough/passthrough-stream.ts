import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import {
  editMembers,
  editScanned,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { StreamPart } from "../../../canonical/response.ts";
import { reportError, trimmed } from "../../errors.ts";
import { asGatewayFacts } from "../../shared/gateway-facts.ts";
import { inOneLine, asObject } from "../../shared/wire-fields.ts";
import type { OriginalRequest } from "../../shared/exchange.ts";
import type { RelayOptions, SseEvent } from "../../shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../shared/stream/answer-reader.ts";
import type { ShownEvent, StreamWriter } from "../../shared/stream/stream-writer.ts";
import { responseRecord } from "../answer-fields.ts";
import type { ResponsesStreamDecoder } from "../decode-stream.ts";
import { failureFrames } from "../errors.ts";
import { StreamStarts } from "./missing-starts.ts";
import {
  endOf,
  type ResponseEdits,
  responseText,
  withSealedProvenance,
} from "./passthrough-answer.ts";

/** Options of a writer that keeps a Responses stream's bytes. */
interface KeptWriterOptions extends RelayOptions {
  reader: AnswerReader;
  /** Has the latest event that was read, and what has come of each item. */
  decoder: Pick<ResponsesStreamDecoder, "event" | "eventType" | "filled">;
  request: OriginalRequest;
  /** The slug of the provider that answers. */
  providerId: string;
  /** Whether the metadata is part of the last event instead of an event of its own. */
  metadataInLastEvent: boolean;
}

/** An event of the stream. */
interface WireEvent {
  type: string;
  fields: JsonObject;
  data: string;
}

/**
 * Writes a Responses stream in its own dialect: events are passed on unchanged, response objects
 * with the client's id and model, sequence numbers without gaps, and the charge in the terminal
 * event, which a stream that was cut never gets.
 */
export class KeptWriter implements StreamWriter {
  // A comment that ends in a single line break, so that no client mistakes it for an event.
  readonly pingFrame = ": ping\n";
  /** The number of the next event. */
  nextNumber = 0;
  private readonly delivered: DeliveredItems;
  private readonly starts: StreamStarts;
  private createdAtSeconds = 0;
  /** Whether the client received the creation of the response. */
  private isCreated = false;
  /** The event that ends the stream; absent while it has not come. */
  private last: WireEvent | undefined;
  private latest: ShownEvent | undefined;

  constructor(private readonly options: KeptWriterOptions) {
    this.delivered = new DeliveredItems(options.decoder);
    this.starts = new StreamStarts(options.shown.id);
  }

  write(parts: readonly StreamPart[], sse?: SseEvent): string {
    this.latest = undefined;
    if (sse === undefined) return parts.length === 0 ? "" : this.endedAtCap();
    const { event: fields, eventType: type } = this.options.decoder;
    // Clients throw at a second start.
    if (fields === undefined || (type === "response.created" && this.isCreated)) return "";
    const frame = this.framesOf({ type, fields, data: trimmed(sse.data) });
    this.latest = { frame, isRewritten: false };
    return frame;
  }

  latestShown(): ShownEvent | undefined {
    return this.latest;
  }

  /** Items are shown again where the response breaks off. */
  get repeatsLatest(): boolean {
    return this.options.decoder.eventType.startsWith("response.output_item.");
  }

  noteRun({ count }: { count: number }): void {
    this.nextNumber += count;
  }

  async end(): Promise<string> {
    const { options, last } = this;
    if (last === undefined) return "";
    const { type, fields } = last;
    const { chargedNano, isByok } = await options.settle();
    const metered = options.reader.metered();
    const metadataText = options.metadataText();
    const gateway = asGatewayFacts({
      chargedNano,
      isByok,
      metered,
      fallback: options.fallback,
      metadataText: options.metadataInLastEvent ? metadataText : undefined,
    });
    const response = { ...asObject(fields.response), status: type.slice("response.".length) };
    const end = { metered, gateway, ...endOf(response, options.request.nowSeconds()) };
    const text = this.withResponse(last.data, { ...this.edits(), end });
    const frame = this.frame(type, { fields, text });
    if (options.metadataInLastEvent) return frame;
    const metadata = `{"type":"${brand.metadataEvent}","${brand.metadataKey}":${metadataText}}`;
    return frame + this.frame(brand.metadataEvent, { text: metadata });
  }

  fail(error: GatewayError): string {
    const { request, shown, providerId } = this.options;
    const frames = failureFrames(reportError(error, { traceId: request.traceId }), {
      ...shown,
      createdAtSeconds: this.createdAtSeconds,
      sequenceNumber: this.nextNumber,
      output: this.delivered.output(),
      requestBody: request.body,
    });
    return withSealedProvenance(frames.join(""), providerId);
  }

  private framesOf(event: WireEvent): string {
    const { type, fields, data } = event;
    const before = this.missingBefore(type, fields);
    if (type === "response.completed" || type === "response.incomplete") {
      this.last = event;
      return before;
    }
    const response = asObject(fields.response);
    if (typeof response?.created_at === "number") this.createdAtSeconds = response.created_at;
    this.delivered.observe(type, fields);
    const text =
      response === undefined
        ? withSealedProvenance(data, this.options.providerId)
        : this.withResponse(data, this.edits());
    return before + this.frame(type, { fields, text });
  }

  /**
   * Returns the events that must precede this one and that the provider left out: the creation of
   * the response, and the starts of an item and of its part.
   */
  private missingBefore(type: string, fields: JsonObject): string {
    if (!type.startsWith("response.")) return "";
    let frames = "";
    if (!this.isCreated && type !== "response.created") frames = this.creation(type, fields);
    this.isCreated = true;
    for (const missing of this.starts.before(type, fields)) {
      this.delivered.observe(missing.type, missing.fields);
      frames += this.ownFrame(missing.type, missing.fields);
    }
    this.starts.note(type, fields);
    return frames;
  }

  private creation(type: string, { response }: JsonObject): string {
    const { shown, request } = this.options;
    const createdAt = asObject(response)?.created_at;
    this.createdAtSeconds = typeof createdAt === "number" ? createdAt : request.nowSeconds();
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
    return this.frame(type, { text: JSON.stringify({ type, ...fields }) });
  }

  /**
   * Returns the ends of the items that are still open, since the answer ends at its cap, and
   * prepares the event that says so.
   */
  private endedAtCap(): string {
    const { shown, request, providerId } = this.options;
    const done = this.delivered
      .unfinished()
      .map(([index, item]) =>
        this.ownFrame("response.output_item.done", { output_index: index, item }),
      );
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
    const type = "response.incomplete";
    const data = JSON.stringify({ type, response });
    this.last = { type, fields: { response }, data };
    return withSealedProvenance(done.join(""), providerId);
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
  private frame(type: string, { fields, text }: { fields?: JsonObject; text: string }): string {
    const number = this.nextNumber;
    this.nextNumber += 1;
    const numbered =
      fields?.sequence_number === number
        ? text
        : editMembers(text, new Map([["sequence_number", String(number)]]));
    return `event: ${type}\ndata: ${inOneLine(numbered)}\n\n`;
  }
}

/** The members of an item's event that are read. */
interface ItemEvent {
  output_index?: unknown;
  item?: unknown;
}

/** An item as its latest event has it. */
interface DeliveredItem {
  item: JsonObject;
  isDone: boolean;
}

/** The items of a stream as far as they came, for the record of a response that broke off. */
class DeliveredItems {
  private readonly items = new Map<number, DeliveredItem>();

  constructor(private readonly decoder: Pick<ResponsesStreamDecoder, "filled">) {}

  observe(type: string, { output_index: index, item }: ItemEvent): void {
    if (typeof index !== "number" || !Number.isInteger(index)) return;
    const isDone = type === "response.output_item.done";
    if (isDone || type === "response.output_item.added")
      this.items.set(index, { item: { ...(Object(item) as JsonObject) }, isDone });
  }

  /** Returns the items in order; unfinished ones are marked as such. */
  output(): JsonObject[] {
    return this.inOrder().map(([index, { item, isDone }]) =>
      isDone ? item : this.unfinishedItem(index, item),
    );
  }

  /** Returns the unfinished items by their place, as far as they came. */
  unfinished(): [number, JsonObject][] {
    return this.inOrder().flatMap(([index, { item, isDone }]) =>
      isDone ? [] : [[index, this.unfinishedItem(index, item)]],
    );
  }

  private inOrder(): [number, DeliveredItem][] {
    return [...this.items].sort(([a], [b]) => a - b);
  }

  private unfinishedItem(index: number, item: JsonObject): JsonObject {
    return { ...this.decoder.filled(index, item), status: "incomplete" };
  }
}
