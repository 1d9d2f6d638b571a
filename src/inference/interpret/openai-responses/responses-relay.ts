import { brand } from "../../../platform/lib/brand.ts";
import type { GatewayError } from "../../../platform/lib/errors.ts";
import { editMembers, editScanned, scanMembers } from "../../../platform/lib/json-members.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { failureFrames } from "../../dialects/openai-responses/encode-error.ts";
import { responseRecord } from "../../dialects/openai-responses/response-record.ts";
import { reportError } from "../../dialects/report-error.ts";
import { emptyAnswer, malformedAnswer } from "../../upstream/classify-failure.ts";
import type { SseEvent } from "../../upstream/sse-event.ts";
import { asGatewayFacts } from "../gateway-facts.ts";
import type { ClientRequest, RelayOptions, StreamRelay } from "../interpretation.ts";
import { reportedFault, StreamFault, type ReportedDetails } from "../stream-fault.ts";
import { DeliveredItems, type ItemEvent } from "./delivered-items.ts";
import { endOf, itemsOf } from "./read-response.ts";
import { isCall, ResponseMeter, type ItemFields, type ResponseFields } from "./response-meter.ts";
import { responseText, type ResponseEdits } from "./response-text.ts";
import { withSealedProvenance } from "./sealed-text.ts";

/** What a Responses relay is made of. */
export interface ResponsesRelayOptions extends RelayOptions {
  request: ClientRequest;
  /** Slug of the provider that answers. */
  providerId: string;
  /** The metadata stands in the last event instead of in one of its own. */
  metadataInLastEvent: boolean;
}

/** An event of the stream as far as it is read. */
interface WireEvent extends ItemEvent {
  type?: unknown;
  sequence_number?: unknown;
  response?: (ResponseFields & { created_at?: unknown }) | null;
  item?: ItemFields | null;
  error?: ReportedDetails | string | null;
}

/**
 * Relays a Responses stream in the dialect that it came in: events go on as they are, response objects
 * with the client's id and model, numbers without a gap, and the charge in the terminal event, which a
 * stream that was cut never gets.
 */
export class ResponsesRelay implements StreamRelay {
  ended = false;
  upstreamId: string | null = null;
  // A comment that ends in a single line break, so that no client mistakes it for an event.
  readonly pingFrame = ": ping\n";
  private readonly options: ResponsesRelayOptions;
  private readonly meter = new ResponseMeter();
  private readonly delivered = new DeliveredItems();
  private sequenceNumber = 0;
  private createdAtSeconds = 0;

  constructor(options: ResponsesRelayOptions) {
    this.options = options;
  }

  get hasContent(): boolean {
    return this.meter.outputCharacters > 0;
  }

  get finished(): boolean {
    return this.ended;
  }

  get finishReason(): string | null {
    return this.meter.finishReason;
  }

  metered(): MeteredUsage {
    return this.meter.metered(this.options);
  }

  accept(sse: SseEvent): string | Promise<string> {
    const { data } = sse;
    // Heartbeats that are no JSON, such as `data: : keepalive`, and terminators of other dialects are nobody's content.
    if (!data.startsWith("{") && sse.event !== "error") return "";
    const event = this.parse(sse);
    const type = typeof event.type === "string" ? event.type : (sse.event ?? "");
    if (type === "error" || (event.response === undefined && event.error))
      throw reportedFault(detailsOf(event));
    if (type === "response.failed" || type === "response.cancelled") throw this.failedFault(event);
    if (type === "response.completed" || type === "response.incomplete")
      return this.close(type, { event, data });
    this.observe(type, event);
    return this.frame(type, { event, text: this.edited(event, data) });
  }

  finish(): string {
    const { status } = this.options;
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(status));
    throw new StreamFault(
      malformedAnswer(status, "the stream ended before the answer was finished"),
    );
  }

  get outputCharacters(): number {
    return this.meter.outputCharacters;
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

  private parse({ data, event }: SseEvent): WireEvent {
    try {
      return JSON.parse(data) as WireEvent;
    } catch {
      // Some servers end a stream with `event: error` and a sentence.
      if (event === "error") return { type: "error", error: data };
      throw new StreamFault(
        malformedAnswer(this.options.status, "an event of the stream is not valid JSON"),
      );
    }
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
    // Calls are heard when they begin, and what the provider runs itself when it is done.
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
    // Of a thought only the seal is news: its text came before.
    this.meter.addItem(
      item.type === "reasoning"
        ? { type: "reasoning", encrypted_content: item.encrypted_content }
        : item,
    );
  }

  /** The event's text with what is the gateway's in it. */
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

  /** One frame with the next number. */
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
    return `event: ${type}\ndata: ${numbered.includes("\n") ? numbered.replaceAll("\n", " ") : numbered}\n\n`;
  }

  /** The terminal event, once it is known what the answer cost. An end without content is the provider's failure. */
  private async close(
    type: string,
    { event, data }: { event: WireEvent; data: string },
  ): Promise<string> {
    const response = event.response ?? {};
    if (this.meter.outputCharacters === 0)
      for (const item of itemsOf(response)) this.meter.addItem(item);
    this.observeResponse({ ...response, status: type.slice("response.".length) });
    const { options } = this;
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(options.status));
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

/** An error event, flat as OpenAI's reference has it or with a member of that name. */
function detailsOf({ error, ...flat }: WireEvent): ReportedDetails {
  if (typeof error === "string") return { message: error };
  const { type: _type, ...details } = flat as ReportedDetails & { type?: unknown };
  return error ?? details;
}
