import { reconcileFinish } from "../../canonical/finish-reason.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ItemPlace, StreamPart } from "../../canonical/stream-part.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { decodeAnnotation } from "./annotation-fields.ts";
import { thinkingText } from "./decode-messages.ts";
import { decodeImage } from "./decode-response.ts";
import { decodeFinish, hasFinished } from "./finish-fields.ts";
import { decodeLogProbabilities } from "./log-probability-fields.ts";
import { ReasoningStream } from "./stream-reasoning.ts";
import { ToolCallStream } from "./stream-tool-calls.ts";

/** Reduces the deltas of one choice to items that are opened, filled and closed. */
export class ChoiceStream {
  /** True once the choice's `finish` was given out; later deltas are heartbeats. */
  finished = false;
  private readonly index: number;
  private itemCount = 0;
  private text: ItemPlace | undefined;
  private lastText: ItemPlace | undefined;
  private refusal: ItemPlace | undefined;
  private audio: ItemPlace | undefined;
  private readonly reasoning: ReasoningStream;
  private readonly calls: ToolCallStream;

  constructor(index: number, surroundings: { responseId: () => string; context: DecodeContext }) {
    this.index = index;
    this.reasoning = new ReasoningStream(this.nextPlace, surroundings.context);
    this.calls = new ToolCallStream({ nextPlace: this.nextPlace, ...surroundings });
  }

  /** One entry of a chunk's `choices`. Thoughts come before text when a chunk has both. */
  read(choice: JsonObject): StreamPart[] {
    if (this.finished) return [];
    const delta = asObject(choice.delta) ?? asObject(choice.message) ?? {};
    const parts = [
      ...this.readReasoning(delta),
      ...this.readLogProbabilities(choice),
      ...this.readContent(delta.content),
      ...this.readRefusal(delta.refusal),
      ...this.readAnnotations(delta.annotations),
      ...this.readAudio(delta.audio),
      ...this.readImages(delta.images),
      ...this.readCalls(delta),
    ];
    if (hasFinished(choice)) parts.push(...this.finish(choice));
    return parts;
  }

  /** Closes what is open and says why the choice ended; without a reported reason it is inferred. */
  finish(choice: JsonObject = {}): StreamPart[] {
    this.finished = true;
    const finish = reconcileFinish(decodeFinish(choice), this.calls.hasCalls);
    return [
      ...this.reasoning.close(), ...this.closeText(), ...this.calls.close(),
      { type: "finish", choiceIndex: this.index, finish },
    ];
  }

  private readonly nextPlace = (): ItemPlace => {
    const place = { choiceIndex: this.index, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  };

  private readReasoning(delta: JsonObject): StreamPart[] {
    if (!ReasoningStream.speaks(delta)) return [];
    const parts = this.reasoning.read(delta);
    return parts.length === 0 ? parts : [...this.closeText(), ...parts];
  }

  private readLogProbabilities(choice: JsonObject): StreamPart[] {
    if (choice.logprobs === undefined || choice.logprobs === null) return [];
    const probabilities = decodeLogProbabilities(choice.logprobs);
    const count = (probabilities?.content?.length ?? 0) + (probabilities?.refusal?.length ?? 0);
    return count === 0 ? [] : [{ type: "logprobs", choiceIndex: this.index, ...probabilities }];
  }

  private readContent(content: unknown): StreamPart[] {
    if (typeof content === "string") return this.readText(content);
    return (asArray(content) ?? []).flatMap((part) => this.readContentPart(part));
  }

  private readContentPart(value: JsonValue): StreamPart[] {
    const part = asObject(value);
    if (part?.type !== "thinking") return this.readText(asString(part?.text) ?? "");
    const parts = this.reasoning.readThinking(thinkingText(part.thinking));
    return parts.length === 0 ? parts : [...this.closeText(), ...parts];
  }

  private readText(text: string): StreamPart[] {
    if (text === "") return [];
    if (this.text !== undefined) return [{ type: "text-delta", ...this.text, text }];
    const closed = this.reasoning.close();
    const place = (this.text = this.lastText = this.nextPlace());
    return [...closed, { type: "text-start", ...place }, { type: "text-delta", ...place, text }];
  }

  private closeText(): StreamPart[] {
    const place = this.text;
    this.text = undefined;
    return place === undefined ? [] : [{ type: "text-end", ...place }];
  }

  private readRefusal(value: unknown): StreamPart[] {
    const refusal = asString(value);
    if (!refusal) return [];
    const closed = this.refusal === undefined ? [...this.reasoning.close(), ...this.closeText()] : [];
    this.refusal ??= this.nextPlace();
    return [...closed, { type: "refusal-delta", ...this.refusal, refusal }];
  }

  private readAnnotations(value: unknown): StreamPart[] {
    const place = this.lastText;
    if (place === undefined) return [];
    return (asArray(value) ?? []).flatMap((entry): StreamPart[] => {
      const annotation = decodeAnnotation(entry);
      return annotation === undefined ? [] : [{ type: "annotation", ...place, annotation }];
    });
  }

  private readAudio(value: unknown): StreamPart[] {
    const audio = asObject(value);
    if (audio === undefined) return [];
    this.audio ??= this.nextPlace();
    const { id, data, transcript, expires_at: expiresAt } = audio;
    return [{
      type: "audio-delta", ...this.audio,
      ...(typeof id === "string" && { id }),
      ...(typeof data === "string" && { data }),
      ...(typeof transcript === "string" && { transcript }),
      ...(typeof expiresAt === "number" && { expiresAtSeconds: expiresAt }),
    }];
  }

  private readImages(value: unknown): StreamPart[] {
    return (asArray(value) ?? []).flatMap(decodeImage).map((image) => ({ type: "image", ...this.nextPlace(), image }));
  }

  private readCalls(delta: JsonObject): StreamPart[] {
    const functionCall = asObject(delta.function_call);
    const deltas = functionCall === undefined ? asArray(delta.tool_calls) : [{ index: 0, function: functionCall }];
    if (deltas === undefined || deltas.length === 0) return [];
    const parts = deltas.flatMap((call) => this.calls.read(call));
    return parts.length === 0 ? parts : [...this.reasoning.close(), ...this.closeText(), ...parts];
  }
}

/** The index of a choice; servers that send one choice may leave it out. */
export const choiceIndexOf = (choice: JsonObject): number => asNumber(choice.index) ?? 0;
