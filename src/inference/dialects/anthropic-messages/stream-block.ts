import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ItemPlace, ReasoningEnd, StreamPart } from "../../canonical/stream-part.ts";
import type { DecodeContext } from "../dialect.ts";
import { asObject, asString } from "../request-fields.ts";
import { unwrapInput } from "../tool-aliases.ts";
import { decodeCitation } from "./citation-fields.ts";
import { callExtensions, provenanceOf } from "./decode-response.ts";

/** A content block of a stream while it is open. */
export interface OpenBlock {
  /** Parts that its start means. */
  opening(): StreamPart[];
  fill(delta: JsonObject): StreamPart[];
  close(): StreamPart[];
}

interface Surroundings {
  place: ItemPlace;
  context: DecodeContext;
}

/** The block that a `content_block_start` opens. */
export function openBlock(fields: JsonObject, { place, context }: Surroundings): OpenBlock {
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
  private readonly fields: JsonObject;
  private readonly place: ItemPlace;

  constructor(fields: JsonObject, place: ItemPlace) {
    this.fields = fields;
    this.place = place;
  }

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

/** A thought, whose seal comes last and whole; one that cannot be read is all seal, and whole from its start. */
class ThoughtBlock implements OpenBlock {
  private readonly fields: JsonObject;
  private readonly place: ItemPlace;
  private readonly context: DecodeContext;
  private signature: string | undefined;

  constructor(fields: JsonObject, { place, context }: Surroundings) {
    this.fields = fields;
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

/** A call. Its input comes in pieces of JSON text; a few servers send it whole with the start. */
class CallBlock implements OpenBlock {
  private readonly fields: JsonObject;
  private readonly place: ItemPlace;
  private readonly context: DecodeContext;
  private text = "";

  constructor(fields: JsonObject, { place, context }: Surroundings) {
    this.fields = fields;
    this.place = place;
    this.context = context;
  }

  opening(): StreamPart[] {
    const wireName = asString(this.fields.name) ?? "";
    const alias = this.context.toolAliases?.get(wireName);
    return [
      {
        type: "tool-call-start",
        ...this.place,
        kind: this.unwraps ? "custom" : "function",
        id: asString(this.fields.id) ?? "",
        name: alias?.name ?? wireName,
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
        ...callExtensions(this.fields),
      },
    ];
  }

  fill(delta: JsonObject): StreamPart[] {
    const piece = asString(delta.partial_json) ?? "";
    this.text += piece;
    return this.unwraps ? [] : this.delta(piece);
  }

  close(): StreamPart[] {
    const whole = asObject(this.fields.input);
    const missing =
      this.text === "" && whole !== undefined && Object.keys(whole).length > 0
        ? JSON.stringify(whole)
        : "";
    const rest = this.unwraps ? unwrapInput(this.text || missing) : missing;
    return [...this.delta(rest), { type: "tool-call-end", ...this.place }];
  }

  /** A custom tool that went out as a function: its input is known only when the arguments are whole. */
  private get unwraps(): boolean {
    return this.context.toolAliases?.get(asString(this.fields.name) ?? "")?.unwrapsInput === true;
  }

  private delta(text: string): StreamPart[] {
    return text === "" ? [] : [{ type: "tool-call-delta", ...this.place, arguments: text }];
  }
}

/** A block that only this dialect knows, such as a search that the provider ran: given out whole, when it is. */
class OpaqueBlock implements OpenBlock {
  private value: JsonObject;
  private readonly place: ItemPlace;
  private input = "";

  constructor(fields: JsonObject, place: ItemPlace) {
    this.value = fields;
    this.place = place;
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

/** The block with one member of a delta: text is added to text, all else replaces. */
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
