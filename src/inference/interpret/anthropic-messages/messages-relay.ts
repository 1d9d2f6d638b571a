import { brand } from "../../../platform/lib/brand.ts";
import type { GatewayError } from "../../../platform/lib/errors.ts";
import { editMembers } from "../../../platform/lib/json-members.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { encodeStreamError } from "../../dialects/anthropic-messages/encode-error.ts";
import { pingFrame } from "../../dialects/anthropic-messages/frame.ts";
import { readStreamError } from "../../dialects/anthropic-messages/read-error.ts";
import { emptyAnswer, malformedAnswer } from "../../upstream/classify-failure.ts";
import type { SseEvent } from "../../upstream/sse-event.ts";
import type { RelayOptions, StreamRelay } from "../interpretation.ts";
import { fallbackMembers } from "../model-fallback.ts";
import { reportedFault, StreamFault } from "../stream-fault.ts";
import { memberText } from "./member-text.ts";
import { pricedUsageText, withoutCost } from "./message-usage-text.ts";
import { MessagesStreamMeter, type MessagesEvent } from "./messages-stream-meter.ts";

/** What a relay of Messages is made of. */
export interface MessagesRelayOptions extends RelayOptions {
  traceId: string;
}

/**
 * Relays a Messages stream in its own dialect: every event goes on as it came, but for id and model at the
 * start, the charge in the last usage and the metadata on `message_stop`. A stream that was cut never
 * looks complete.
 */
export class MessagesRelay implements StreamRelay {
  ended = false;
  readonly pingFrame = pingFrame;
  private readonly options: MessagesRelayOptions;
  private readonly meter: MessagesStreamMeter;
  /** `delta` of an ending whose usage has not come, as JSON text. */
  private heldEnding: string | undefined;
  private costShown = false;

  constructor(options: MessagesRelayOptions) {
    this.options = options;
    this.meter = new MessagesStreamMeter(options);
  }

  get hasContent(): boolean {
    return this.meter.hasContent;
  }

  get finished(): boolean {
    return this.meter.finishReason !== null;
  }

  get finishReason(): string | null {
    return this.meter.finishReason;
  }

  get upstreamId(): string | null {
    return this.meter.upstreamId;
  }

  metered(): MeteredUsage {
    return this.meter.metered();
  }

  accept({ event: name, data }: SseEvent): string | Promise<string> {
    // Heartbeats that are no JSON are nobody's content.
    if (!data.startsWith("{")) {
      if (name === "error") throw reportedFault({ message: data });
      return "";
    }
    const event = this.parse(data);
    const type = typeof event.type === "string" ? event.type : name;
    if (type === "error" || (type === undefined && "error" in event))
      throw reportedFault(readStreamError(event as JsonObject));
    event.type = type;
    this.meter.observe(event);
    switch (type) {
      case undefined:
        return "";
      case "message_start":
        return this.startFrame(data);
      case "message_delta":
        return this.ending(data, event);
      case "message_stop":
        return this.stop(data);
      default:
        return eventFrame(type, data);
    }
  }

  /** The upstream went away without `message_stop`: whole where it had said why it ended. */
  finish(): Promise<string> {
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(this.options.status));
    if (!this.finished) throw this.malformed("the stream ended before the answer was finished");
    return this.stop('{"type":"message_stop"}');
  }

  get outputCharacters(): number {
    return this.meter.outputCharacters;
  }

  endAtCap(): Promise<string> {
    this.meter.finishReason ??= "max_tokens";
    return this.stop('{"type":"message_stop"}');
  }

  fail(error: GatewayError): string {
    this.ended = true;
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  private parse(data: string): MessagesEvent {
    try {
      return JSON.parse(data) as MessagesEvent;
    } catch {
      throw this.malformed("an event of the stream is not valid JSON");
    }
  }

  /** The first event: the client's id and model, and the fallback, since this is the first that carries usage. */
  private startFrame(data: string): string {
    const { shown, fallback, inputTokens } = this.options;
    const message = memberText(data, "message") ?? "{}";
    const usage = memberText(message, "usage");
    const renamed = editMembers(
      message,
      new Map([
        ["id", JSON.stringify(shown.id)],
        ["model", JSON.stringify(shown.model)],
        // Clients throw at a start without usage.
        [
          "usage",
          usage === undefined
            ? `{"input_tokens":${inputTokens},"output_tokens":0}`
            : withoutCost(usage),
        ],
      ]),
    );
    return eventFrame(
      "message_start",
      editMembers(
        data,
        new Map([
          ["message", renamed],
          ...(fallback === undefined ? [] : fallbackMembers(fallback)),
        ]),
      ),
    );
  }

  /** The charge belongs to the usage that stands with the reason; reason and usage may come in two events. */
  private ending(data: string, { delta }: MessagesEvent): string | Promise<string> {
    const usage = memberText(data, "usage");
    if (this.costShown) return "";
    if (usage !== undefined && this.finished) return this.withCharge(data, usage);
    if (typeof delta?.stop_reason === "string") {
      this.heldEnding = memberText(data, "delta");
      return "";
    }
    return usage === undefined
      ? eventFrame("message_delta", data)
      : eventFrame("message_delta", editMembers(data, new Map([["usage", withoutCost(usage)]])));
  }

  private async withCharge(data: string, original: string | undefined): Promise<string> {
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(this.options.status));
    const { chargedNano } = await this.options.settle();
    this.costShown = true;
    const edits = new Map([
      ["usage", pricedUsageText({ original, metered: this.metered(), chargedNano })],
    ]);
    if (this.heldEnding !== undefined) edits.set("delta", this.heldEnding);
    return this.closeBlocks() + eventFrame("message_delta", editMembers(data, edits));
  }

  /** Clients take no ending while a block is open. */
  private closeBlocks(): string {
    const open = [...this.meter.openBlocks];
    this.meter.openBlocks.clear();
    return open
      .map((index) =>
        eventFrame("content_block_stop", `{"type":"content_block_stop","index":${index}}`),
      )
      .join("");
  }

  private async stop(data: string): Promise<string> {
    if (!this.meter.isAcceptable) throw new StreamFault(emptyAnswer(this.options.status));
    this.meter.finishReason ??= this.meter.inferredReason;
    const ending = this.costShown ? "" : await this.withCharge(this.ownEnding(), undefined);
    this.ended = true;
    const edits = new Map([[brand.metadataKey as string, this.options.metadataText()]]);
    return ending + eventFrame("message_stop", editMembers(data, edits));
  }

  /** An ending that the upstream did not send, or sent without its usage. */
  private ownEnding(): string {
    const delta = { stop_reason: this.finishReason, stop_sequence: null };
    return JSON.stringify({ type: "message_delta", delta });
  }

  private malformed(observation: string): StreamFault {
    return new StreamFault(malformedAnswer(this.options.status, observation));
  }
}

/** An event as it came. JSON text that was broken into lines goes on as one, since each line would need its own field. */
const eventFrame = (type: string, data: string): string =>
  `event: ${type}\ndata: ${data.includes("\n") ? data.replaceAll("\n", " ") : data}\n\n`;
