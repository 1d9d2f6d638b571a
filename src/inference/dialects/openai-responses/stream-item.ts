import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { DecodeContext } from "../dialect.ts";

/** One item of an upstream's stream, from its first event to its last. */
export interface ItemStream {
  /** An event of the item other than its beginning and its end. */
  read(type: string, event: JsonObject): StreamPart[];
  /** The item is whole: tells what no event told, and ends it. */
  done(item: JsonObject): StreamPart[];
  /** Ends what is open, because something else begins or the answer has ended. */
  close(): StreamPart[];
}

/** What an item knows of the stream around it. */
export interface StreamSurroundings {
  context: DecodeContext;
  /** Position of the item in the upstream's output. */
  outputIndex: number;
  nextPlace(): ItemPlace;
  /** True when another message was heard before. */
  startsMessage(): boolean;
  messageBegan(): void;
  callBegan(): void;
  responseId(): string;
}

/** What a whole text adds to what came of it; nothing when the two disagree, since what was said is said. */
export function suffixOf(whole: string | undefined, told: string): string {
  if (whole === undefined || !whole.startsWith(told)) return "";
  return whole.slice(told.length);
}
