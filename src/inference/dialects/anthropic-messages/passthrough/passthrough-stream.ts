import { brand } from "../../../../platform/kernel/brand.ts";
import type { GatewayError } from "../../../../platform/kernel/errors.ts";
import { editMembers, memberText } from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { StreamPart } from "../../../canonical/response.ts";
import { trimmed } from "../../errors.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { inOneLine, asObject } from "../../shared/wire-fields.ts";
import type { RelayOptions, SseEvent } from "../../shared/stream/stream-relay.ts";
import type { AnswerReader } from "../../shared/stream/answer-reader.ts";
import type { ShownEvent, StreamWriter } from "../../shared/stream/stream-writer.ts";
import { encodeFinish, fittingEnd, pingFrame } from "../answer-fields.ts";
import type { MessagesStreamDecoder } from "../decode-stream.ts";
import { encodeStreamError } from "../errors.ts";
import { pricedUsageText, withoutCost } from "../usage.ts";
import { LateThoughts } from "./late-thoughts.ts";

/** Options of a writer that keeps a Messages stream's bytes. */
interface KeptWriterOptions extends RelayOptions {
  reader: AnswerReader;
  /** Has the latest event that was read, and the counts that came so far. */
  decoder: Pick<MessagesStreamDecoder, "event" | "eventType" | "hasCalls" | "tally">;
  traceId: string;
}

/**
 * Writes a Messages stream in its own dialect: every event as it came, except for id and model at
 * the start, the charge in the last usage and the metadata on `message_stop`.
 */
export class KeptWriter implements StreamWriter {
  readonly pingFrame = pingFrame;
  finishReason: string | null = null;
  private readonly late = new LateThoughts();
  /** Blocks that the client was sent the start of, and not the end. */
  private readonly openBlocks = new Set<number>();
  /** Whether the client was sent the start of the message. */
  private started = false;
  /** The `delta` of an ending whose usage has not come, as JSON text. */
  private heldEnding: string | undefined;
  /** The data of the event that ends the stream. */
  private lastData = '{"type":"message_stop"}';
  private costShown = false;
  private latest: ShownEvent | undefined;

  constructor(private readonly options: KeptWriterOptions) {}

  write(parts: readonly StreamPart[], sse?: SseEvent): string | Promise<string> {
    this.latest = undefined;
    const { event, eventType: type } = this.options.decoder;
    if (sse === undefined) this.noteFinish(parts);
    // Clients throw at a second start.
    if (sse === undefined || event === undefined || type === undefined) return "";
    if (type === "message_start" && this.started) return "";
    const frames = this.framesOf(event, { type, data: trimmed(sse.data) });
    if (typeof frames !== "string") return frames;
    const frame = this.late.pass(event.type === type ? event : { ...event, type }, frames);
    if (frame !== "") this.latest = { frame, isRewritten: false };
    return frame;
  }

  latestShown(): ShownEvent | undefined {
    return this.latest;
  }

  async end(): Promise<string> {
    this.finishReason ??= this.fitting(null);
    const ending = this.costShown ? "" : await this.withCharge(this.ownEnding(), undefined);
    const edits = new Map([[brand.metadataKey as string, this.options.metadataText()]]);
    return ending + eventFrame("message_stop", editMembers(this.lastData, edits));
  }

  fail(error: GatewayError): string {
    return encodeStreamError(error, { traceId: this.options.traceId }).join("");
  }

  /** Records an end that the upstream did not send. */
  private noteFinish(parts: readonly StreamPart[]): void {
    for (const part of parts)
      if (part.type === "finish")
        this.finishReason ??= String(encodeFinish(part.finish).stop_reason);
  }

  private framesOf(
    event: JsonObject,
    { type, data }: { type: string; data: string },
  ): string | Promise<string> {
    const before = this.missingBefore(type, event);
    const { index } = event;
    switch (type) {
      case "message_start":
        return before + this.startFrame(data);
      case "content_block_start":
        if (typeof index === "number") this.openBlocks.add(index);
        return before + eventFrame(type, data);
      case "content_block_stop":
        if (typeof index !== "number" || !this.openBlocks.delete(index)) return before;
        return before + eventFrame(type, data);
      case "message_delta":
        return joined(before, this.ending(data, asObject(event.delta)));
      case "message_stop":
        this.lastData = data;
        return before;
      default:
        return before + eventFrame(type, data);
    }
  }

  /**
   * Returns the events that must precede this one and that the provider omitted: the start of the
   * message, and that of a text or thinking block. Servers that imitate Anthropic omit them, and
   * clients throw without them.
   */
  private missingBefore(type: string, { index, delta }: JsonObject): string {
    if (!followsStart.has(type)) return "";
    const frames = this.started ? "" : this.startFrame('{"type":"message_start"}');
    if (type !== "content_block_delta" || typeof index !== "number" || this.openBlocks.has(index))
      return frames;
    const block = blockOf(asObject(delta)?.type);
    if (block === undefined) return frames;
    const closed = this.closeBlocks();
    this.openBlocks.add(index);
    const start = { type: "content_block_start", index, content_block: block };
    return frames + closed + eventFrame(start.type, JSON.stringify(start));
  }

  /**
   * Returns the first event, with the client's id and model and the fallback, since this is the
   * first event with usage.
   */
  private startFrame(data: string): string {
    this.started = true;
    const { shown, fallback, inputTokens } = this.options;
    const message = memberText(data, "message") ?? "{}";
    const usage = memberText(message, "usage");
    const renamed = editMembers(
      message,
      new Map([
        ...startMembers.filter(([name]) => memberText(message, name) === undefined),
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

  /** Returns the stop reason that fits the content so far. */
  private fitting(reason: string | null): string {
    return fittingEnd(reason, this.options.decoder.hasCalls);
  }

  /**
   * Adds the charge to the usage that accompanies the finish reason; the two may come in separate
   * events.
   */
  private ending(eventText: string, delta: JsonObject = {}): string | Promise<string> {
    const { stop_reason: reason } = delta;
    if (typeof reason === "string") this.finishReason ??= this.fitting(reason);
    if (this.costShown) return "";
    const data = this.withFittingEnd(eventText, reason);
    const usage = memberText(data, "usage");
    if (usage !== undefined && this.finishReason !== null) return this.withCharge(data, usage);
    if (typeof reason === "string") {
      this.heldEnding = memberText(data, "delta");
      return "";
    }
    return usage === undefined
      ? eventFrame("message_delta", data)
      : eventFrame("message_delta", editMembers(data, new Map([["usage", withoutCost(usage)]])));
  }

  /** Returns the event with a stop reason that fits the content; most events have one already. */
  private withFittingEnd(data: string, reason: unknown): string {
    if (typeof reason !== "string" || reason === this.finishReason) return data;
    const fitting = editMembers(
      memberText(data, "delta") ?? "{}",
      new Map([["stop_reason", JSON.stringify(this.finishReason)]]),
    );
    return editMembers(data, new Map([["delta", fitting]]));
  }

  private async withCharge(data: string, original: string | undefined): Promise<string> {
    const { reader, decoder, settle } = this.options;
    reader.assertContent();
    const { chargedNano } = await settle();
    this.costShown = true;
    const edits = new Map([
      [
        "usage",
        pricedUsageText({
          original: original && decoder.tally.complete(original),
          metered: reader.metered(),
          chargedNano,
        }),
      ],
    ]);
    if (this.heldEnding !== undefined) edits.set("delta", this.heldEnding);
    return this.closeBlocks() + eventFrame("message_delta", editMembers(data, edits));
  }

  /** Closes open blocks, since clients accept no ending while a block is open. */
  private closeBlocks(): string {
    const open = [...this.openBlocks];
    this.openBlocks.clear();
    let frames = "";
    for (const index of open) {
      const data = `{"type":"content_block_stop","index":${index}}`;
      const frame = eventFrame("content_block_stop", data);
      if (this.late.holds(index)) this.late.append(frame);
      else frames += frame;
    }
    return frames;
  }

  /** Returns an ending that the upstream did not send, or sent without its usage. */
  private ownEnding(): string {
    const delta = { stop_reason: this.finishReason, stop_sequence: null };
    return JSON.stringify({ type: "message_delta", delta });
  }
}

/** Returns frames that may wait for the charge, after others. */
const joined = (before: string, frames: string | Promise<string>): string | Promise<string> =>
  typeof frames === "string" ? before + frames : frames.then((rest) => before + rest);

/** The events that clients accept only after the start of the message. */
const followsStart: ReadonlySet<unknown> = new Set([
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
]);

/** The members that every message has at its start, as JSON text. */
const startMembers: readonly (readonly [name: string, text: string])[] = [
  ["type", '"message"'],
  ["role", '"assistant"'],
  ["content", "[]"],
  ["stop_reason", "null"],
  ["stop_sequence", "null"],
];

/**
 * Returns the empty block that a delta of text or thinking belongs to; undefined for blocks that
 * need a name.
 */
function blockOf(deltaType: unknown): JsonObject | undefined {
  if (deltaType === "text_delta") return { type: "text", text: "" };
  return deltaType === "thinking_delta"
    ? { type: "thinking", thinking: "", signature: "" }
    : undefined;
}

/** Returns an event with the given data, unchanged. */
const eventFrame = (type: string, data: string): string =>
  `event: ${type}\ndata: ${inOneLine(data)}\n\n`;
