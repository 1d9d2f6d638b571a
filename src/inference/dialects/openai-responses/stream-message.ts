import type { JsonObject } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { decodeAnnotation } from "./annotation-fields.ts";
import { decodeTokens } from "../openai-token-fields.ts";
import { suffixOf, type ItemStream, type StreamSurroundings } from "./stream-item.ts";

interface PartState {
  place: ItemPlace | undefined;
  /** Where the citations of the part belong, which may come after its end. */
  lastPlace: ItemPlace | undefined;
  text: string;
  annotationCount: number;
}

/** A message of an upstream's stream: texts and refusals by their content index. */
export class MessageStream implements ItemStream {
  private readonly surroundings: StreamSurroundings;
  private readonly phase: string | undefined;
  private hasBegun = false;
  private readonly parts = new Map<number, PartState>();

  constructor(item: JsonObject, surroundings: StreamSurroundings) {
    this.surroundings = surroundings;
    this.phase = asString(item.phase);
  }

  read(type: string, event: JsonObject): StreamPart[] {
    const index = asNumber(event.content_index) ?? 0;
    switch (type) {
      case "response.output_text.delta":
        return this.text(index, { text: asString(event.delta) ?? "", event });
      case "response.output_text.done":
        return [...this.rest(index, asString(event.text)), ...this.end(index)];
      case "response.output_text.annotation.added":
        return this.annotations(index, [event.annotation ?? null]);
      case "response.refusal.delta":
        return this.refusal(index, asString(event.delta) ?? "");
      case "response.refusal.done":
        return this.restOfRefusal(index, asString(event.refusal));
      case "response.content_part.done":
        return this.reconcile(index, asObject(event.part) ?? {});
      default:
        return [];
    }
  }

  done(item: JsonObject): StreamPart[] {
    const whole = (asArray(item.content) ?? []).flatMap((part, index) =>
      this.reconcile(index, asObject(part) ?? {}),
    );
    return [...whole, ...this.close()];
  }

  close(): StreamPart[] {
    return [...this.parts.keys()].flatMap((index) => this.end(index));
  }

  /** What a whole part tells beyond what its deltas told. */
  private reconcile(index: number, part: JsonObject): StreamPart[] {
    if (part.type === "refusal") return this.restOfRefusal(index, asString(part.refusal));
    const text = this.rest(index, asString(part.text));
    const told = this.parts.get(index)?.annotationCount ?? 0;
    const annotations = this.annotations(index, (asArray(part.annotations) ?? []).slice(told));
    return [...text, ...annotations, ...this.end(index)];
  }

  private part(index: number): PartState {
    let part = this.parts.get(index);
    if (part === undefined)
      this.parts.set(
        index,
        (part = { place: undefined, lastPlace: undefined, text: "", annotationCount: 0 }),
      );
    return part;
  }

  private rest(index: number, whole: string | undefined): StreamPart[] {
    return this.text(index, { text: suffixOf(whole, this.part(index).text), event: {} });
  }

  private text(index: number, { text, event }: { text: string; event: JsonObject }): StreamPart[] {
    if (text === "") return [];
    const part = this.part(index);
    part.text += text;
    const parts = part.place === undefined ? this.start(part) : [];
    const tokens = decodeTokens(event.logprobs);
    if (tokens.length > 0) parts.push({ type: "logprobs", choiceIndex: 0, content: tokens });
    const { choiceIndex, itemIndex } = part.place ?? this.surroundings.nextPlace();
    parts.push({ type: "text-delta", choiceIndex, itemIndex, text });
    return parts;
  }

  private start(part: PartState): StreamPart[] {
    const others = this.close();
    const place = this.surroundings.nextPlace();
    part.place = place;
    part.lastPlace = place;
    const { phase } = this;
    const startsMessage = !this.hasBegun && this.surroundings.startsMessage();
    this.hasBegun = true;
    this.surroundings.messageBegan();
    return [
      ...others,
      {
        type: "text-start",
        ...place,
        ...(startsMessage && { startsMessage }),
        ...(phase !== undefined && { phase }),
      },
    ];
  }

  private end(index: number): StreamPart[] {
    const part = this.parts.get(index);
    if (part?.place === undefined) return [];
    const { place } = part;
    part.place = undefined;
    return [{ type: "text-end", ...place }];
  }

  private annotations(index: number, values: readonly unknown[]): StreamPart[] {
    const part = this.part(index);
    const place = part.lastPlace;
    // A citation of nothing: the whole part will bring it again.
    if (place === undefined) return [];
    return values.flatMap((value): StreamPart[] => {
      const annotation = decodeAnnotation(asObject(value) ?? null);
      if (annotation === undefined) return [];
      part.annotationCount += 1;
      return [{ type: "annotation", ...place, annotation }];
    });
  }

  private restOfRefusal(index: number, whole: string | undefined): StreamPart[] {
    return this.refusal(index, suffixOf(whole, this.part(index).text));
  }

  private refusal(index: number, refusal: string): StreamPart[] {
    if (refusal === "") return [];
    const part = this.part(index);
    part.text += refusal;
    part.lastPlace ??= this.surroundings.nextPlace();
    this.surroundings.messageBegan();
    return [{ type: "refusal-delta", ...part.lastPlace, refusal }];
  }
}
