import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, ReasoningEnd, StreamPart } from "../../canonical/stream-part.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { sealsOf, type SealReader } from "./reasoning-fields.ts";

/** Where the readable text of a stream's thoughts comes from. */
type TextSource = "reasoning_details" | "reasoning_content" | "reasoning" | "content";

interface OpenThought {
  place: ItemPlace;
  /** `index` of the block in `reasoning_details`. */
  blockIndex: number | undefined;
  end: ReasoningEnd;
}

/**
 * Thoughts of one choice. Servers mirror the same text in several fields, so the first field that
 * speaks is the only one listened to; seals are taken from `reasoning_details` in any case.
 */
export class ReasoningStream {
  private source: TextSource | undefined;
  private open: OpenThought | undefined;
  private readonly nextPlace: () => ItemPlace;
  private readonly readSeal: SealReader;

  constructor(nextPlace: () => ItemPlace, context: DecodeContext) {
    this.nextPlace = nextPlace;
    this.readSeal = sealsOf(context.providerId);
  }

  /** True when the delta carries thoughts, so that open text has to end first. */
  static speaks(delta: JsonObject): boolean {
    return (
      Boolean(delta.reasoning_content) ||
      Boolean(delta.reasoning) ||
      (Array.isArray(delta.reasoning_details) && delta.reasoning_details.length > 0)
    );
  }

  read(delta: JsonObject): StreamPart[] {
    const parts: StreamPart[] = [];
    const details = asArray(delta.reasoning_details) ?? [];
    for (const value of details) {
      const detail = asObject(value);
      if (detail !== undefined) this.readDetail(detail, parts);
    }
    for (const source of ["reasoning_content", "reasoning"] as const) {
      const text = asString(delta[source]);
      if (text && this.listensTo(source)) this.append({ text }, parts);
    }
    return parts;
  }

  /** A thinking part among a delta's content (Mistral). */
  readThinking(text: string): StreamPart[] {
    const parts: StreamPart[] = [];
    if (text !== "" && this.listensTo("content")) this.append({ text }, parts);
    return parts;
  }

  /** Closes the open thought, with the seals it got. */
  close(): StreamPart[] {
    const { open } = this;
    this.open = undefined;
    return open === undefined ? [] : [open.end];
  }

  private listensTo(source: TextSource): boolean {
    this.source ??= source;
    return this.source === source;
  }

  private readDetail(detail: JsonObject, parts: StreamPart[]): void {
    const blockIndex = asNumber(detail.index);
    if (
      blockIndex !== undefined &&
      this.open?.blockIndex !== undefined &&
      this.open.blockIndex !== blockIndex
    ) {
      parts.push(...this.close());
    }
    const text = asString(detail.text);
    const summary = asString(detail.summary);
    const start = { id: asString(detail.id), format: asString(detail.format), blockIndex };
    if (text && this.listensTo("reasoning_details")) this.append({ text, ...start }, parts);
    if (summary && this.listensTo("reasoning_details")) {
      this.append(
        { text: summary, summaryIndex: asNumber(detail.summary_index) ?? 0, ...start },
        parts,
      );
    }
    this.seal({ detail, start }, parts);
  }

  private seal(
    { detail, start }: { detail: JsonObject; start: ThoughtStart },
    parts: StreamPart[],
  ): void {
    for (const [field, value] of [
      ["signature", detail.signature],
      ["encrypted", detail.data],
    ] as const) {
      const sealed = asString(value);
      if (!sealed) continue;
      const { seal, provenance } = this.readSeal(sealed);
      const { end } = this.opened(start, parts);
      end[field] = seal;
      if (provenance !== undefined) end.provenance = provenance;
    }
  }

  private append(
    piece: { text: string; summaryIndex?: number } & Partial<ThoughtStart>,
    parts: StreamPart[],
  ): void {
    const { place } = this.opened(piece, parts);
    const { text, summaryIndex } = piece;
    parts.push({
      type: "reasoning-delta",
      ...place,
      text,
      ...(summaryIndex !== undefined && { summaryIndex }),
    });
  }

  private opened(
    { id, format, blockIndex }: Partial<ThoughtStart>,
    parts: StreamPart[],
  ): OpenThought {
    if (this.open !== undefined) {
      this.open.blockIndex ??= blockIndex;
      return this.open;
    }
    const place = this.nextPlace();
    parts.push({
      type: "reasoning-start",
      ...place,
      ...(id !== undefined && { id }),
      ...(format !== undefined && { format }),
    });
    return (this.open = { place, blockIndex, end: { type: "reasoning-end", ...place } });
  }
}

interface ThoughtStart {
  id: string | undefined;
  format: string | undefined;
  blockIndex: number | undefined;
}
