import { brand } from "../../../platform/lib/brand.ts";
import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import type { ResponseStart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { errorEvent, eventFrame, failure } from "./encode-error.ts";
import { encodeFinish, type Ending } from "./finish-fields.ts";
import type { Emit } from "./message-builder.ts";
import { OutputBuilder } from "./output-builder.ts";
import { responseRecord } from "./response-record.ts";

/** What of an upstream's id may stand in ids of items. */
export const idBaseOf = (id: string): string =>
  id
    .replace(/^resp_/, "")
    .replace(/[^a-zA-Z0-9]/g, "")
    .slice(-40) || "0";

/**
 * Canonical parts to Responses events: `response.created`, `response.in_progress`, the items, one
 * terminal event with the whole record, then the gateway's metadata. Sequence numbers have no gap, and
 * every id is the same from its first event to its last.
 */
export class ResponsesStreamEncoder implements StreamEncoder {
  private readonly context: ResponseContext;
  private readonly builder: OutputBuilder;
  private frames: string[] = [];
  private sequenceNumber = 0;
  private start: ResponseStart | undefined;
  private usage: MeteredUsage | undefined;
  private ended = false;

  constructor(context: ResponseContext = {}) {
    this.context = context;
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
