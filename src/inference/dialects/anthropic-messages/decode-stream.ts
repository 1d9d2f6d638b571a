import { reconcileFinish, type Finish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { DecodeContext, StreamDecoder } from "../dialect.ts";
import { asNumber, asObject, asString } from "../request-fields.ts";
import { parseEventObject, trimmed } from "../stream-failures.ts";
import { decodeFinish } from "./finish-fields.ts";
import { readStreamError } from "./read-error.ts";
import { openBlock, type OpenBlock } from "./stream-block.ts";
import { cut, malformed, textError } from "./stream-errors.ts";
import { deltaLength, UsageTally } from "./usage-tally.ts";

/**
 * Events of a Messages stream to canonical parts: one small step for each kind of event. Usage is told at
 * the start and again at the end, each time as the total so far; it is given out once. A stream without
 * `message_stop` is whole when its `message_delta` said why it ended, and an error otherwise.
 */
export class MessagesStreamDecoder implements StreamDecoder {
  finished = false;
  private readonly context: DecodeContext;
  private readonly blocks = new Map<number, OpenBlock>();
  private readonly tally = new UsageTally();
  private finish: Finish | undefined;
  private itemCount = 0;
  private hasCalls = false;
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.context = context;
  }

  get latestUsage(): MeteredUsage | undefined {
    return this.tally.metered();
  }

  decode({ event: name, data }: { event?: string; data: string }): StreamPart[] {
    if (this.ended) return [];
    const text = trimmed(data);
    // Comments and keep-alives that came as data say nothing.
    if (!text.startsWith("{")) return name === "error" ? this.fail(textError(text)) : [];
    const event = parseEventObject(text);
    if (event === undefined) return this.fail(malformed);
    const type = asString(event.type) ?? name;
    if (type === "error" || (type === undefined && event.error)) {
      return this.fail({ type: "error", fault: "reported", error: readStreamError(event) });
    }
    return this.onEvent(type, event);
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    return this.finish === undefined ? this.fail(cut) : this.close();
  }

  private onEvent(type: string | undefined, event: JsonObject): StreamPart[] {
    switch (type) {
      case "message_start":
        return this.start(asObject(event.message) ?? {});
      case "content_block_start":
        return this.openBlock(event);
      case "content_block_delta":
        return this.fillBlock(event);
      case "content_block_stop":
        return this.closeBlock(asNumber(event.index) ?? 0);
      case "message_delta":
        return this.readEnding(event);
      case "message_stop":
        return this.close();
      // Pings, and events that are still to be invented.
      default:
        return [];
    }
  }

  private start(message: JsonObject): StreamPart[] {
    this.tally.start(message.usage);
    if (this.started) return [];
    this.started = true;
    return [
      {
        type: "response-start",
        id: asString(message.id) ?? "",
        model: asString(message.model) ?? "",
        createdAtSeconds: 0,
      },
    ];
  }

  private openBlock(event: JsonObject): StreamPart[] {
    const index = asNumber(event.index) ?? 0;
    const fields = asObject(event.content_block);
    if (fields === undefined || this.finished) return [];
    const closed = this.closeBlock(index);
    const block = openBlock(fields, { place: this.nextPlace(), context: this.context });
    this.blocks.set(index, block);
    this.hasCalls ||= fields.type === "tool_use";
    return [...this.startIfNone(), ...closed, ...block.opening()];
  }

  private fillBlock(event: JsonObject): StreamPart[] {
    const delta = asObject(event.delta);
    if (delta === undefined || this.finished) return [];
    this.tally.said(deltaLength(delta));
    const index = asNumber(event.index) ?? 0;
    const block = this.blocks.get(index);
    if (block !== undefined) return block.fill(delta);
    const opened = this.openImplied(index, delta);
    return [...opened, ...(this.blocks.get(index)?.fill(delta) ?? [])];
  }

  /** Some servers leave out the start of a block of text. */
  private openImplied(index: number, delta: JsonObject): StreamPart[] {
    if (delta.type === "text_delta")
      return this.openBlock({ index, content_block: { type: "text", text: "" } });
    return delta.type === "thinking_delta"
      ? this.openBlock({ index, content_block: { type: "thinking", thinking: "" } })
      : [];
  }

  private closeBlock(index: number): StreamPart[] {
    const block = this.blocks.get(index);
    this.blocks.delete(index);
    return block?.close() ?? [];
  }

  private readEnding(event: JsonObject): StreamPart[] {
    this.tally.end(event.usage);
    const delta = asObject(event.delta) ?? {};
    if (this.finished || asString(delta.stop_reason) === undefined) return [];
    this.finish = decodeFinish(delta) ?? { reason: "stop" };
    return this.tellFinish();
  }

  private close(): StreamPart[] {
    this.ended = true;
    return [
      ...(this.finished || !this.started ? [] : this.tellFinish()),
      ...this.usageParts(),
      { type: "response-end" },
    ];
  }

  private tellFinish(): StreamPart[] {
    this.finished = true;
    const open = [...this.blocks.keys()].flatMap((index) => this.closeBlock(index));
    return [
      ...this.startIfNone(),
      ...open,
      { type: "finish", choiceIndex: 0, finish: reconcileFinish(this.finish, this.hasCalls) },
    ];
  }

  private startIfNone(): StreamPart[] {
    return this.started ? [] : this.start({});
  }

  private fail(error: Extract<StreamPart, { type: "error" }>): StreamPart[] {
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private usageParts(): StreamPart[] {
    const usage = this.latestUsage;
    return usage === undefined ? [] : [{ type: "usage", usage }];
  }

  private nextPlace(): ItemPlace {
    const place = { choiceIndex: 0, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  }
}
