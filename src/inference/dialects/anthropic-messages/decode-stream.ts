import {
  reconcileFinish,
  spokenText,
  type Finish,
  type MeteredUsage,
  type ItemPlace,
  type ReasoningEnd,
  type SpokenPart,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import type { SkippedTexts, StreamDecoder } from "../shared/stream/stream-decoder.ts";
import { cutStream, malformedEvent, parseEventObject, textError, trimmed } from "../errors.ts";
import { asNumber, asObject, asString } from "../shared/wire-fields.ts";
import { MemberRenamer } from "../shared/schemas/member-names.ts";
import { renamesMembers, type ToolAlias, unwrapInput } from "../shared/tools.ts";
import { decodeCitation, decodeFinish } from "./answer-fields.ts";
import { callExtensions, provenanceOf } from "./decode-response.ts";
import { readStreamError } from "./errors.ts";
import { deltaLength, UsageTally } from "./usage.ts";

/**
 * Decodes the events of a Messages stream to canonical parts, with one small step for each kind of
 * event. Usage is reported at the start and again at the end, each time as the total so far; it is
 * emitted once. A stream without `message_stop` is complete when its `message_delta` said why it
 * ended, and an error otherwise.
 */
export class MessagesStreamDecoder implements StreamDecoder {
  /** Names of arguments that have others on the wire have to be read. */
  readonly skipsCalls: boolean;
  readonly tally = new UsageTally();
  /** The latest event with its type, for a writer that keeps its bytes; undefined for others. */
  event: JsonObject | undefined;
  eventType: string | undefined;
  /** Whether a call has begun. */
  hasCalls = false;
  private finished = false;
  private readonly blocks = new Map<number, OpenBlock>();
  /** Characters of the latest delta that are in other members than its text. */
  private besideText = 0;
  private finish: Finish | undefined;
  private itemCount = 0;
  private started = false;
  private ended = false;

  constructor(private readonly context: DecodeContext = {}) {
    this.skipsCalls = !renamesMembers(context.toolAliases);
  }

  get latestUsage(): MeteredUsage | undefined {
    return this.tally.metered();
  }

  decode({ event: name, data }: { event?: string; data: string }): StreamPart[] {
    this.event = undefined;
    if (this.ended) return [];
    const text = trimmed(data);
    // Comments and keep-alives that came as data are ignored.
    if (!text.startsWith("{")) return name === "error" ? this.fail(textError(text)) : [];
    const event = parseEventObject(text);
    if (event === undefined) return this.fail(name === "error" ? textError(text) : malformedEvent);
    const type = asString(event.type) ?? name;
    if (type === "error" || (type === undefined && event.error)) {
      return this.fail({ type: "error", fault: "reported", error: readStreamError(event) });
    }
    this.event = event;
    this.eventType = type;
    return this.onEvent(type, event);
  }

  skip(_like: SpokenPart, { characters, count }: SkippedTexts): void {
    this.tally.said(characters + count * this.besideText);
  }

  end(): StreamPart[] {
    if (this.ended) return [];
    return this.finish === undefined ? this.fail(cutStream) : this.close();
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
      // Pings, and event types that are not known yet.
      default:
        return [];
    }
  }

  private start(message: JsonObject): StreamPart[] {
    // The usage of a second start does not belong to this answer.
    if (this.started) return [];
    this.tally.start(message.usage);
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
    const length = deltaLength(delta);
    this.tally.said(length);
    const index = asNumber(event.index) ?? 0;
    const block = this.blocks.get(index);
    if (block !== undefined) {
      const parts = block.fill(delta);
      const [part] = parts;
      if (part !== undefined && ("text" in part || "arguments" in part))
        this.besideText = length - spokenText(part).length;
      return parts;
    }
    const opened = this.openImplied(index, delta);
    return [...opened, ...(this.blocks.get(index)?.fill(delta) ?? [])];
  }

  /** Opens a block whose start some servers omit: that of a text. */
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

/** A content block of a stream while it is open. */
interface OpenBlock {
  /** Returns the parts that its start means. */
  opening(): StreamPart[];
  fill(delta: JsonObject): StreamPart[];
  close(): StreamPart[];
}

interface Surroundings {
  place: ItemPlace;
  context: DecodeContext;
}

/** Creates the block that a `content_block_start` opens. */
function openBlock(fields: JsonObject, { place, context }: Surroundings): OpenBlock {
  switch (fields.type) {
    case "text":
      return new TextBlock(fields, place);
    case "thinking":
    case "redacted_thinking":
      return new ThoughtBlock(fields, { place, context });
    case "tool_use":
      return new CallBlock(fields, { place, context });
    default:
      return new OpaqueBlock(fields, place);
  }
}

class TextBlock implements OpenBlock {
  constructor(
    private readonly fields: JsonObject,
    private readonly place: ItemPlace,
  ) {}

  opening(): StreamPart[] {
    return [{ type: "text-start", ...this.place }, ...this.text(this.fields.text)];
  }

  fill(delta: JsonObject): StreamPart[] {
    if (delta.type !== "citations_delta") return this.text(delta.text);
    const annotation = delta.citation === undefined ? undefined : decodeCitation(delta.citation);
    return annotation === undefined ? [] : [{ type: "annotation", ...this.place, annotation }];
  }

  close(): StreamPart[] {
    return [{ type: "text-end", ...this.place }];
  }

  private text(value: unknown): StreamPart[] {
    const text = asString(value);
    const { choiceIndex, itemIndex } = this.place;
    return text ? [{ type: "text-delta", choiceIndex, itemIndex, text }] : [];
  }
}

/**
 * A reasoning block, whose seal comes last and complete. One that cannot be read consists of its
 * seal and is complete from its start.
 */
class ThoughtBlock implements OpenBlock {
  private readonly place: ItemPlace;
  private readonly context: DecodeContext;
  private signature: string | undefined;

  constructor(
    private readonly fields: JsonObject,
    { place, context }: Surroundings,
  ) {
    this.place = place;
    this.context = context;
    this.signature = asString(fields.signature) || undefined;
  }

  opening(): StreamPart[] {
    return [{ type: "reasoning-start", ...this.place }, ...this.text(this.fields.thinking)];
  }

  fill(delta: JsonObject): StreamPart[] {
    if (delta.type === "signature_delta") {
      this.signature = asString(delta.signature) || this.signature;
      return [];
    }
    return this.text(delta.thinking);
  }

  close(): StreamPart[] {
    const encrypted =
      this.fields.type === "redacted_thinking" ? asString(this.fields.data) : undefined;
    const end: ReasoningEnd = { type: "reasoning-end", ...this.place };
    if (this.signature !== undefined)
      Object.assign(end, { signature: this.signature }, provenanceOf(this.context));
    if (encrypted !== undefined) Object.assign(end, { encrypted }, provenanceOf(this.context));
    return [end];
  }

  private text(value: unknown): StreamPart[] {
    const text = asString(value);
    return text ? [{ type: "reasoning-delta", ...this.place, text }] : [];
  }
}

/**
 * A call. Its input comes in pieces of JSON text; a few servers send it complete with the start.
 */
class CallBlock implements OpenBlock {
  private readonly place: ItemPlace;
  private readonly alias: ToolAlias | undefined;
  private readonly renamer: MemberRenamer | undefined;
  private text = "";

  constructor(
    private readonly fields: JsonObject,
    { place, context: { toolAliases } }: Surroundings,
  ) {
    this.place = place;
    this.alias = toolAliases?.get(asString(fields.name) ?? "");
    const { members } = this.alias ?? {};
    this.renamer = members && new MemberRenamer(members);
  }

  opening(): StreamPart[] {
    const { alias } = this;
    return [
      {
        type: "tool-call-start",
        ...this.place,
        kind: this.unwraps ? "custom" : "function",
        id: asString(this.fields.id) ?? "",
        name: alias?.name ?? asString(this.fields.name) ?? "",
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
        ...callExtensions(this.fields),
      },
    ];
  }

  fill(delta: JsonObject): StreamPart[] {
    const piece = asString(delta.partial_json) ?? "";
    this.text += piece;
    return this.unwraps ? [] : this.delta(this.renamed(piece));
  }

  close(): StreamPart[] {
    const whole = asObject(this.fields.input);
    const missing =
      this.text === "" && whole !== undefined && Object.keys(whole).length > 0
        ? JSON.stringify(whole)
        : "";
    const rest = this.unwraps
      ? unwrapInput(this.text || missing)
      : this.renamed(missing) + (this.renamer?.end() ?? "");
    return [...this.delta(rest), { type: "tool-call-end", ...this.place }];
  }

  private renamed(piece: string): string {
    return this.renamer?.push(piece) ?? piece;
  }

  /**
   * Whether it is a custom tool that was sent as a function, whose input is known only when the
   * arguments are complete.
   */
  private get unwraps(): boolean {
    return this.alias?.unwrapsInput === true;
  }

  private delta(text: string): StreamPart[] {
    return text === "" ? [] : [{ type: "tool-call-delta", ...this.place, arguments: text }];
  }
}

/**
 * A block that only this dialect has, such as a search that the provider ran; emitted when it is
 * complete.
 */
class OpaqueBlock implements OpenBlock {
  private value: JsonObject;
  private input = "";

  constructor(
    fields: JsonObject,
    private readonly place: ItemPlace,
  ) {
    this.value = fields;
  }

  opening(): StreamPart[] {
    return [];
  }

  fill({ type, ...members }: JsonObject): StreamPart[] {
    if (type === "input_json_delta") this.input += asString(members.partial_json) ?? "";
    else this.value = Object.entries(members).reduce(grown, this.value);
    return [];
  }

  close(): StreamPart[] {
    const value = this.input === "" ? this.value : { ...this.value, input: parsed(this.input) };
    return [
      {
        type: "opaque",
        ...this.place,
        part: { type: "opaque", dialect: "anthropic-messages", value },
      },
    ];
  }
}

/**
 * Returns the block with one member of a delta applied: text is appended, anything else replaces.
 */
function grown(value: JsonObject, [key, added]: [string, JsonValue | undefined]): JsonObject {
  if (added === null || added === undefined) return value;
  const before = value[key];
  return {
    ...value,
    [key]: typeof before === "string" && typeof added === "string" ? before + added : added,
  };
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return { _raw: text };
  }
}
