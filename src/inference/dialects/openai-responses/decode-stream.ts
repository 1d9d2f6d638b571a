import {
  reconcileFinish,
  type MeteredUsage,
  type ErrorPart,
  type ItemPlace,
  type SpokenPart,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import type { SkippedTexts, StreamDecoder } from "../shared/stream/stream-decoder.ts";
import { cutStream, malformedEvent, parseEventObject, trimmed } from "../errors.ts";
import { readResponseUsage } from "./usage.ts";
import { asArray, asNumber, asObject, asString } from "../shared/wire-fields.ts";
import { decodeImage } from "./decode-response.ts";
import { decodeFinish } from "./answer-fields.ts";
import { readReportedError } from "./errors.ts";
import {
  CallStream,
  type ItemStream,
  MessageStream,
  type StreamSurroundings,
  ThoughtStream,
} from "./items/stream-items.ts";

/**
 * Decodes the events of a Responses stream to canonical parts. What only the closing event of a
 * part, of an item or of the response reports is emitted then, and once. A stream that ends without
 * its terminal event is cut.
 */
export class ResponsesStreamDecoder implements StreamDecoder {
  readonly keepsTexts = true;
  readonly skipsCalls = true;
  latestUsage: MeteredUsage | undefined;
  answerId: string | undefined;
  hasDraft = false;
  /** The latest event with its type, for a writer that keeps its bytes; undefined for others. */
  event: JsonObject | undefined;
  eventType = "";
  private readonly output: OutputStream;
  private responseId = "";
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.output = new OutputStream({
      context,
      responseId: () => this.responseId || (context.callSeed ?? ""),
    });
  }

  decode(event: { event?: string; data: string }): StreamPart[] {
    this.event = undefined;
    if (this.ended) return [];
    const data = trimmed(event.data);
    // Comments, keep-alives and terminators of other dialects that came as data.
    if (!data.startsWith("{"))
      return event.event === "error" ? this.fail(reported({ message: data })) : [];
    const fields = parseEventObject(data);
    if (fields === undefined)
      return this.fail(event.event === "error" ? reported({ message: data }) : malformedEvent);
    this.event = fields;
    this.eventType = asString(fields.type) ?? event.event ?? "";
    return this.read(this.eventType, fields);
  }

  skip(like: SpokenPart, { text }: SkippedTexts): void {
    this.output.skip(like, text);
  }

  end(): StreamPart[] {
    return this.ended ? [] : this.fail(cutStream);
  }

  /** Returns an item as it began, with what has come of it since. */
  filled(outputIndex: number, item: JsonObject): JsonObject {
    return this.output.filled(outputIndex, item);
  }

  private read(type: string, fields: JsonObject): StreamPart[] {
    const response = asObject(fields.response);
    // A server that answers in another dialect has an error without a type.
    if (response === undefined && fields.error) return this.fail(reported(fields));
    switch (type) {
      case "response.completed":
      case "response.incomplete":
        return this.finish(type, response ?? {});
      case "response.failed":
      case "response.cancelled":
        return this.fail(reported(response ?? fields), response);
      case "error":
        return this.fail(reported(fields));
      case "response.output_item.added":
        return this.begun(this.output.added(indexOf(fields), asObject(fields.item) ?? {}));
      case "response.output_item.done":
        return this.begun(this.output.done(indexOf(fields), asObject(fields.item) ?? {}));
      case "response.image_generation_call.partial_image":
        this.hasDraft = true;
        return this.begun(this.output.read(type, fields));
      default:
        if (response !== undefined) return this.start(response);
        return this.begun(this.output.read(type, fields));
    }
  }

  /** Returns parts of items, after the start of the answer where the upstream omitted it. */
  private begun(parts: StreamPart[]): StreamPart[] {
    return this.started || parts.length === 0 ? parts : [...this.start({}), ...parts];
  }

  private start(response: JsonObject): StreamPart[] {
    this.note(response);
    if (this.started) return [];
    this.started = true;
    this.responseId = this.answerId ?? "";
    const serviceTier = asString(response.service_tier);
    return [
      {
        type: "response-start",
        id: this.responseId,
        model: asString(response.model) ?? "",
        createdAtSeconds: asNumber(response.created_at) ?? 0,
        ...(serviceTier !== undefined && { serviceTier }),
      },
    ];
  }

  private finish(type: string, response: JsonObject): StreamPart[] {
    const start = this.start(response);
    const items = (asArray(response.output) ?? []).flatMap((item, index) => {
      const fields = asObject(item);
      return fields === undefined ? [] : this.output.complete(index, fields);
    });
    const rest = this.output.close();
    this.ended = true;
    const status = type === "response.completed" ? "completed" : "incomplete";
    const finish = reconcileFinish(decodeFinish({ ...response, status }), this.output.hasCalls);
    return [
      ...start,
      ...items,
      ...rest,
      { type: "finish", choiceIndex: 0, finish },
      ...this.usageParts(),
      { type: "response-end" },
    ];
  }

  private fail(error: ErrorPart, response: JsonObject = {}): StreamPart[] {
    this.note(response);
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private note(response: JsonObject): void {
    this.answerId ??= asString(response.id);
    if (response.usage !== undefined && response.usage !== null)
      this.latestUsage = readResponseUsage(response) ?? this.latestUsage;
  }

  private usageParts(): StreamPart[] {
    return this.latestUsage === undefined ? [] : [{ type: "usage", usage: this.latestUsage }];
  }
}

const indexOf = (fields: JsonObject): number | undefined => asNumber(fields.output_index);

const reported = (fields: JsonObject): ErrorPart => ({
  type: "error",
  error: readReportedError(fields),
  fault: "reported",
});

interface KnownItem {
  outputIndex: number;
  id: string | undefined;
  stream: ItemStream;
  /** A call may stay open while other items continue; a message or a reasoning block may not. */
  isCall: boolean;
  isDone: boolean;
}

/** Items that only their own dialect has, which are emitted once they are complete. */
class OpaqueStream implements ItemStream {
  constructor(private readonly surroundings: StreamSurroundings) {}

  read(): StreamPart[] {
    return [];
  }

  done(item: JsonObject): StreamPart[] {
    const image = item.type === "image_generation_call" ? decodeImage(item) : undefined;
    const place = this.surroundings.nextPlace();
    if (image !== undefined) return [{ type: "image", ...place, image }];
    return [
      {
        type: "opaque",
        ...place,
        part: { type: "opaque", dialect: "openai-responses", value: item },
      },
    ];
  }

  close(): StreamPart[] {
    return [];
  }
}

/** Returns the type of an item that was not announced, from the type of its event. */
const typeOfEvent = (type: string): string => {
  if (type.startsWith("response.function_call_arguments.")) return "function_call";
  if (type.startsWith("response.custom_tool_call_input.")) return "custom_tool_call";
  if (type.startsWith("response.reasoning")) return "reasoning";
  return /^response\.(?:output_text|refusal|content_part)\./.test(type) ? "message" : "";
};

/** The items of one answer, by their place in the upstream's output or by their ids. */
class OutputStream {
  /** Whether a call has been announced. */
  hasCalls = false;
  private readonly items: KnownItem[] = [];
  private readonly context: DecodeContext;
  private readonly responseId: () => string;
  /** The item of the latest event. */
  private latest: KnownItem | undefined;
  private itemCount = 0;
  private hasMessages = false;

  constructor({ context, responseId }: { context: DecodeContext; responseId: () => string }) {
    this.context = context;
    this.responseId = responseId;
  }

  added(outputIndex: number | undefined, item: JsonObject): StreamPart[] {
    const known =
      this.find(outputIndex, asString(item.id)) ?? this.add(outputIndex ?? this.items.length, item);
    return known.stream instanceof CallStream ? this.through(known, known.stream.begin(item)) : [];
  }

  done(outputIndex: number | undefined, item: JsonObject): StreamPart[] {
    const known =
      this.find(outputIndex, asString(item.id)) ?? this.add(outputIndex ?? this.items.length, item);
    if (known.isDone) return [];
    known.isDone = true;
    return this.through(known, known.stream.done(item));
  }

  /** Reads an item of the terminal event for what its own events did not report. */
  complete(outputIndex: number, item: JsonObject): StreamPart[] {
    const id = asString(item.id);
    const known = id === undefined ? undefined : this.items.find((one) => one.id === id);
    return this.done(known?.outputIndex ?? outputIndex, item);
  }

  /** Reads any other event of an item. */
  read(type: string, event: JsonObject): StreamPart[] {
    const outputIndex = asNumber(event.output_index);
    const id = asString(event.item_id);
    const found =
      this.find(outputIndex, id) ??
      (outputIndex === undefined && id === undefined ? this.items.at(-1) : undefined);
    const known = found ?? this.implied(type, { outputIndex, id });
    this.latest = known;
    if (known === undefined) return [];
    return known.isDone && known.isCall ? [] : this.through(known, known.stream.read(type, event));
  }

  /** Notes a text of an event that is not read, but else equal to the latest one. */
  skip(like: SpokenPart, text: string): void {
    this.latest?.stream.skip?.(like, text);
  }

  filled(outputIndex: number, item: JsonObject): JsonObject {
    return this.find(outputIndex, undefined)?.stream.filled?.(item) ?? item;
  }

  /** Returns the item of an event whose item was not announced. */
  private implied(
    type: string,
    { outputIndex, id }: { outputIndex: number | undefined; id: string | undefined },
  ): KnownItem | undefined {
    const kind = typeOfEvent(type);
    return kind === ""
      ? undefined
      : this.add(outputIndex ?? this.items.length, { type: kind, ...(id !== undefined && { id }) });
  }

  close(): StreamPart[] {
    return this.items.flatMap(({ stream }) => stream.close());
  }

  private find(outputIndex: number | undefined, id: string | undefined): KnownItem | undefined {
    return outputIndex === undefined
      ? this.items.find((item) => id !== undefined && item.id === id)
      : this.items.find((item) => item.outputIndex === outputIndex);
  }

  /** Returns parts of an item, after the end of the part before it. */
  private through(known: KnownItem, parts: StreamPart[]): StreamPart[] {
    if (parts.length === 0 || this.items.length === 1) return parts;
    const others = this.items.flatMap((item) =>
      item === known || item.isCall ? [] : item.stream.close(),
    );
    return [...others, ...parts];
  }

  private add(outputIndex: number, item: JsonObject): KnownItem {
    const surroundings = this.surroundings(outputIndex);
    const isCall = item.type === "function_call" || item.type === "custom_tool_call";
    const known = {
      outputIndex,
      id: asString(item.id),
      stream: streamOf(item, surroundings),
      isCall,
      isDone: false,
    };
    this.items.push(known);
    return known;
  }

  private surroundings(outputIndex: number): StreamSurroundings {
    return {
      context: this.context,
      outputIndex,
      responseId: this.responseId,
      nextPlace: this.nextPlace,
      startsMessage: () => this.hasMessages,
      messageBegan: () => {
        this.hasMessages = true;
      },
      callBegan: () => {
        this.hasCalls = true;
      },
    };
  }

  private readonly nextPlace = (): ItemPlace => {
    const place = { choiceIndex: 0, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  };
}

function streamOf(item: JsonObject, surroundings: StreamSurroundings): ItemStream {
  switch (item.type) {
    case "message":
      return new MessageStream(item, surroundings);
    case "reasoning":
      return new ThoughtStream(item, surroundings);
    case "function_call":
    case "custom_tool_call":
      return new CallStream(item, surroundings);
    default:
      return new OpaqueStream(surroundings);
  }
}
