import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { decodeThought } from "./decode-output.ts";
import { suffixOf, type ItemStream, type StreamSurroundings } from "./stream-item.ts";

/** A thought of an upstream's stream; it begins with the first thing that it says. */
export class ThoughtStream implements ItemStream {
  private readonly surroundings: StreamSurroundings;
  private id: string | undefined;
  private place: ItemPlace | undefined;
  private readonly told = new Map<string, string>();

  constructor(item: JsonObject, surroundings: StreamSurroundings) {
    this.surroundings = surroundings;
    this.id = asString(item.id) || undefined;
  }

  read(type: string, event: JsonObject): StreamPart[] {
    const summaryIndex = asNumber(event.summary_index) ?? 0;
    switch (type) {
      case "response.reasoning_summary_text.delta":
        return this.think(asString(event.delta) ?? "", summaryIndex);
      case "response.reasoning_summary_text.done":
        return this.rest(asString(event.text), summaryIndex);
      // Open Responses (2026-07) has a shorter name for the thought itself.
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        return this.think(asString(event.delta) ?? "");
      case "response.reasoning_text.done":
      case "response.reasoning.done":
        return this.rest(asString(event.text));
      default:
        return [];
    }
  }

  done(item: JsonObject): StreamPart[] {
    this.id ??= asString(item.id) || undefined;
    const texts = (value: unknown): string[] =>
      (asArray(value) ?? []).map((entry) => asString(asObject(entry)?.text) ?? "");
    const parts = [
      ...texts(item.summary).flatMap((text, index) => this.rest(text, index)),
      ...this.rest(texts(item.content).join("")),
    ];
    const { encrypted, signature, provenance } =
      decodeThought(item, this.surroundings.context) ?? {};
    const seals = {
      ...(encrypted !== undefined && { encrypted }),
      ...(signature !== undefined && { signature }),
      ...(provenance !== undefined && { provenance }),
    };
    const start = encrypted !== undefined || signature !== undefined ? this.start() : [];
    return [...parts, ...start, ...this.end(seals)];
  }

  close(): StreamPart[] {
    return this.end({});
  }

  private rest(whole: string | undefined, summaryIndex?: number): StreamPart[] {
    return this.think(suffixOf(whole, this.told.get(String(summaryIndex)) ?? ""), summaryIndex);
  }

  private think(text: string, summaryIndex?: number): StreamPart[] {
    if (text === "") return [];
    const key = String(summaryIndex);
    this.told.set(key, (this.told.get(key) ?? "") + text);
    const start = this.start();
    const place = this.place ?? this.surroundings.nextPlace();
    return [
      ...start,
      {
        type: "reasoning-delta",
        ...place,
        text,
        ...(summaryIndex !== undefined && { summaryIndex }),
      },
    ];
  }

  private start(): StreamPart[] {
    if (this.place !== undefined) return [];
    this.place = this.surroundings.nextPlace();
    return [
      { type: "reasoning-start", ...this.place, ...(this.id !== undefined && { id: this.id }) },
    ];
  }

  private end(seals: object): StreamPart[] {
    if (this.place === undefined) return [];
    const { place } = this;
    this.place = undefined;
    return [{ type: "reasoning-end", ...place, ...seals }];
  }
}
