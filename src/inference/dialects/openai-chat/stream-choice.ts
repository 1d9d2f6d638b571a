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

  /** One entry of a chunk's `choices`, added to what the chunk means. Thoughts come before text when a chunk has both. */
  read(choice: JsonObject, parts: StreamPart[]): void {
    if (this.finished) return;
    const delta = asObject(choice.delta) ?? asObject(choice.message) ?? {};
    if (ReasoningStream.speaks(delta)) parts.push(...this.readReasoning(delta));
    if (choice.logprobs) parts.push(...this.readLogProbabilities(choice.logprobs));
    if (typeof delta.content === "string") this.readText(delta.content, parts);
    else if (delta.content) this.readContentParts(delta.content, parts);
    if (delta.refusal) parts.push(...this.readRefusal(delta.refusal));
    if (delta.annotations) parts.push(...this.readAnnotations(delta.annotations));
    if (delta.audio) parts.push(...this.readAudio(delta.audio));
    if (delta.images) parts.push(...this.readImages(delta.images));
    if (delta.tool_calls || delta.function_call) parts.push(...this.readCalls(delta));
    if (hasFinished(choice)) parts.push(...this.finish(choice));
  }

  /** Closes what is open and says why the choice ended; without a reported reason it is inferred. */
  finish(choice: JsonObject = {}): StreamPart[] {
    this.finished = true;
    const finish = reconcileFinish(decodeFinish(choice), this.calls.hasCalls);
    return [
      ...this.reasoning.close(),
      ...this.closeText(),
      ...this.calls.close(),
      { type: "finish", choiceIndex: this.index, finish },
    ];
  }

  private readonly nextPlace = (): ItemPlace => {
    const place = { choiceIndex: this.index, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  };

  private readReasoning(delta: JsonObject): StreamPart[] {
    const parts = this.reasoning.read(delta);
    return parts.length === 0 ? parts : [...this.closeText(), ...parts];
  }

  private readLogProbabilities(value: JsonValue): StreamPart[] {
    const probabilities = decodeLogProbabilities(value);
    const count = (probabilities?.content?.length ?? 0) + (probabilities?.refusal?.length ?? 0);
    return count === 0 ? [] : [{ type: "logprobs", choiceIndex: this.index, ...probabilities }];
  }

  private readContentParts(content: unknown, parts: StreamPart[]): void {
    for (const value of asArray(content) ?? []) {
      const part = asObject(value);
      if (part?.type !== "thinking") {
        this.readText(asString(part?.text) ?? "", parts);
        continue;
      }
      const thoughts = this.reasoning.readThinking(thinkingText(part.thinking));
      if (thoughts.length > 0) parts.push(...this.closeText(), ...thoughts);
    }
  }

  private readText(text: string, parts: StreamPart[]): void {
    if (text === "") return;
    if (this.text === undefined) {
      this.text = this.lastText = this.nextPlace();
      parts.push(...this.reasoning.close(), { type: "text-start", ...this.text });
    }
    const { choiceIndex, itemIndex } = this.text;
    parts.push({ type: "text-delta", choiceIndex, itemIndex, text });
  }

  private closeText(): StreamPart[] {
    const place = this.text;
    this.text = undefined;
    return place === undefined ? [] : [{ type: "text-end", ...place }];
  }

  private readRefusal(value: unknown): StreamPart[] {
    const refusal = asString(value);
    if (!refusal) return [];
    const closed =
      this.refusal === undefined ? [...this.reasoning.close(), ...this.closeText()] : [];
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
    return [
      {
        type: "audio-delta",
        ...this.audio,
        ...(typeof id === "string" && { id }),
        ...(typeof data === "string" && { data }),
        ...(typeof transcript === "string" && { transcript }),
        ...(typeof expiresAt === "number" && { expiresAtSeconds: expiresAt }),
      },
    ];
  }

  private readImages(value: unknown): StreamPart[] {
    return (asArray(value) ?? [])
      .flatMap(decodeImage)
      .map((image) => ({ type: "image", ...this.nextPlace(), image }));
  }

  private readCalls(delta: JsonObject): StreamPart[] {
    const functionCall = asObject(delta.function_call);
    const deltas =
      functionCall === undefined
        ? asArray(delta.tool_calls)
        : [{ index: 0, function: functionCall }];
    if (deltas === undefined || deltas.length === 0) return [];
    const parts = deltas.flatMap((call) => this.calls.read(call));
    return parts.length === 0 ? parts : [...this.reasoning.close(), ...this.closeText(), ...parts];
  }
}

/** The index of a choice; servers that send one choice may leave it out. */
export const choiceIndexOf = (choice: JsonObject): number => asNumber(choice.index) ?? 0;
