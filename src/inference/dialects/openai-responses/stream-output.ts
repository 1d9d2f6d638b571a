import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { DecodeContext } from "../dialect.ts";
import { asNumber, asString } from "../request-fields.ts";
import { decodeImage } from "./decode-output.ts";
import { CallStream } from "./stream-call.ts";
import type { ItemStream, StreamSurroundings } from "./stream-item.ts";
import { MessageStream } from "./stream-message.ts";
import { ThoughtStream } from "./stream-thought.ts";

interface KnownItem {
  outputIndex: number;
  id: string | undefined;
  stream: ItemStream;
  /** A call may stay open while others speak; a message or a thought may not. */
  isCall: boolean;
  isDone: boolean;
}

/** Items that only their own dialect understands; they are told when they are whole. */
class OpaqueStream implements ItemStream {
  private readonly surroundings: StreamSurroundings;

  constructor(surroundings: StreamSurroundings) {
    this.surroundings = surroundings;
  }

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

/** What an event without an announced item belongs to. */
const typeOfEvent = (type: string): string => {
  if (type.startsWith("response.function_call_arguments.")) return "function_call";
  if (type.startsWith("response.custom_tool_call_input.")) return "custom_tool_call";
  if (type.startsWith("response.reasoning")) return "reasoning";
  return /^response\.(?:output_text|refusal|content_part)\./.test(type) ? "message" : "";
};

/** The items of one answer, by their place in the upstream's output or by their ids. */
export class OutputStream {
  /** True once a call has been announced. */
  hasCalls = false;
  private readonly items: KnownItem[] = [];
  private readonly context: DecodeContext;
  private readonly responseId: () => string;
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

  /** An item of the terminal event: what its own events did not tell. */
  told(outputIndex: number, item: JsonObject): StreamPart[] {
    const id = asString(item.id);
    const known = id === undefined ? undefined : this.items.find((one) => one.id === id);
    return this.done(known?.outputIndex ?? outputIndex, item);
  }

  /** Any other event of an item. */
  read(type: string, event: JsonObject): StreamPart[] {
    const outputIndex = asNumber(event.output_index);
    const id = asString(event.item_id);
    const found =
      this.find(outputIndex, id) ??
      (outputIndex === undefined && id === undefined ? this.items.at(-1) : undefined);
    const known = found ?? this.implied(type, { outputIndex, id });
    if (known === undefined) return [];
    return known.isDone && known.isCall ? [] : this.through(known, known.stream.read(type, event));
  }

  /** The item that an event tells of which nobody announced. */
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

  /** Parts of an item, after the end of whatever spoke before. */
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
