import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import { asString } from "../request-fields.ts";
import { unwrapInput } from "../tool-aliases.ts";
import { callFacts } from "./decode-output.ts";
import { mintedCallId } from "./decode-response.ts";
import { suffixOf, type ItemStream, type StreamSurroundings } from "./stream-item.ts";

/** A call of an upstream's stream; it is announced when its name is known. */
export class CallStream implements ItemStream {
  private readonly surroundings: StreamSurroundings;
  private place: ItemPlace | undefined;
  private ended = false;
  /** Everything that came so far. */
  private text = "";
  /** How much of it was passed on. */
  private told = 0;
  /** A custom tool that went out as a function: its input is known only when the arguments are whole. */
  private unwraps = false;
  private accumulates: boolean | undefined;

  constructor(item: JsonObject, surroundings: StreamSurroundings) {
    this.surroundings = surroundings;
    this.text = textOf(item);
  }

  /** The announcement, for a call that tells its name at once. */
  begin(item: JsonObject): StreamPart[] {
    return [...this.announce(item), ...this.tell()];
  }

  read(type: string, event: JsonObject): StreamPart[] {
    if (type.endsWith(".delta")) this.text += this.fresh(event);
    else if (type.endsWith(".done"))
      this.text += suffixOf(asString(event.arguments) ?? asString(event.input), this.text);
    return this.tell();
  }

  done(item: JsonObject): StreamPart[] {
    this.text += suffixOf(textOf(item), this.text);
    return [...this.announce(item), ...this.tell(), ...this.close()];
  }

  close(): StreamPart[] {
    if (this.place === undefined || this.ended) return [];
    this.ended = true;
    const end: StreamPart = { type: "tool-call-end", ...this.place };
    return this.unwraps
      ? [{ type: "tool-call-delta", ...this.place, arguments: unwrapInput(this.text) }, end]
      : [end];
  }

  /** Some servers repeat the call and all of its arguments in every delta; the first repetition tells which kind it is. */
  private fresh(event: JsonObject): string {
    const delta = asString(event.delta) ?? "";
    const repeats = asString(event.name) !== undefined || asString(event.call_id) !== undefined;
    if (!repeats || this.text === "" || delta === "") return delta;
    this.accumulates ??= delta.startsWith(this.text);
    return this.accumulates ? suffixOf(delta, this.text) : delta;
  }

  private announce(item: JsonObject): StreamPart[] {
    const { context, nextPlace, responseId, outputIndex, callBegan } = this.surroundings;
    const { unwraps, ...facts } = callFacts(item, context);
    if (this.place !== undefined || facts.name === "") return [];
    this.place = nextPlace();
    this.unwraps = unwraps;
    callBegan();
    const id =
      asString(item.call_id) || asString(item.id) || mintedCallId(responseId(), outputIndex);
    return [{ type: "tool-call-start", ...this.place, ...facts, id }];
  }

  private tell(): StreamPart[] {
    if (this.place === undefined || this.ended || this.unwraps || this.told === this.text.length)
      return [];
    const fresh = this.text.slice(this.told);
    this.told = this.text.length;
    return [{ type: "tool-call-delta", ...this.place, arguments: fresh }];
  }
}

/** Arguments are text; a few servers send the object itself. */
function textOf(item: JsonObject): string {
  const value = item.type === "custom_tool_call" ? item.input : item.arguments;
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}
