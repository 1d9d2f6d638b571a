import { reconcileFinish, type Finish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { LogProbabilities } from "../../canonical/log-probability.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import type {
  ItemPlace,
  ReasoningEnd,
  StreamPart,
  ToolCallStart,
} from "../../canonical/stream-part.ts";
import type { ResponseContext } from "../dialect.ts";
import { encodeAnnotation } from "./annotation-fields.ts";
import { encodeAudio, encodeImage } from "./encode-response.ts";
import { encodeFinish } from "./finish-fields.ts";
import { messageSeparator } from "./join-texts.ts";
import { encodeLogProbabilities } from "./log-probability-fields.ts";
import { encodeDetail, signatureField } from "./reasoning-fields.ts";

type ChoicePart = Extract<StreamPart, { choiceIndex: number }>;

interface OpenCall {
  /** Position among the choice's calls, which is what chat counts. */
  index: number;
  start: ToolCallStart;
  hasText: boolean;
}

/** Encodes one choice of a stream: each call gives the entries of `choices` that its part becomes, mostly one. */
export class ChoiceEncoder {
  private readonly index: number;
  private readonly legacyFunctions: boolean;
  private readonly hidesReasoning: boolean;
  private readonly calls = new Map<number, OpenCall>();
  private readonly thoughts = new Map<number, JsonObject>();
  private pendingProbabilities: LogProbabilities | undefined;
  /** Seals of thoughts after a call, which wait for the id of the call that they stand before. */
  private heldSeals: { seal: ReasoningPart; names: JsonObject }[] = [];
  private pendingSeparator = "";
  private hasRole = false;
  private hasText = false;
  private hasRefusal = false;
  private finished = false;

  constructor(index: number, { request }: ResponseContext) {
    this.index = index;
    this.legacyFunctions = request?.legacyFunctions === true;
    this.hidesReasoning = request?.reasoning?.exclude === true;
  }

  encode(part: ChoicePart): JsonObject[] {
    if (this.finished) return [];
    switch (part.type) {
      case "text-start":
        return this.startText(part.startsMessage === true);
      case "text-delta":
        return this.text(part.text);
      case "text-end":
      case "opaque":
        return [];
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.hidesReasoning ? [] : this.reasoning(part);
      case "tool-call-start":
        return this.startCall(part);
      case "tool-call-delta":
        return this.callText(part, part.arguments);
      case "tool-call-end":
        return this.endCall(part);
      case "refusal-delta":
        return this.refusal(part.refusal);
      case "annotation":
        return encodeAnnotation(part.annotation).flatMap((annotation) =>
          this.delta({ annotations: [annotation] }),
        );
      case "logprobs":
        this.keepProbabilities(part);
        return [];
      case "audio-delta":
        return this.delta({ audio: encodeAudio(part) });
      case "image":
        return encodeImage(part.image).flatMap((image) => this.delta({ images: [image] }));
      case "finish":
        return this.finish(part.finish);
    }
  }

  /** The end of the choice, once; without a reason it is inferred. */
  finish(reported?: Finish): JsonObject[] {
    if (this.finished) return [];
    const finish = reconcileFinish(reported, this.calls.size > 0);
    const refusal =
      finish.reason === "refusal" && !this.hasRefusal ? finish.explanation : undefined;
    const entries = [
      ...this.releaseSeals(),
      ...(refusal === undefined ? [] : this.delta({ refusal })),
      ...(this.hasRole ? [] : this.delta({})),
    ];
    this.finished = true;
    return [
      ...entries,
      this.entry({}, encodeFinish(finish, { legacyFunctions: this.legacyFunctions })),
    ];
  }

  private startText(startsMessage: boolean): JsonObject[] {
    if (startsMessage && this.hasText) this.pendingSeparator = messageSeparator;
    return [];
  }

  /** JSON text of the one entry that a text becomes; undefined where more belongs to it than the text. */
  plainText(text: string): string | undefined {
    if (
      !this.hasRole ||
      this.finished ||
      this.pendingSeparator !== "" ||
      this.pendingProbabilities !== undefined
    )
      return undefined;
    this.hasText = true;
    return `{"index":${this.index},"delta":{"content":${JSON.stringify(text)}},"logprobs":null,"finish_reason":null}`;
  }

  text(text: string): JsonObject[] {
    if (this.finished) return [];
    this.hasText = true;
    const content = this.pendingSeparator + text;
    this.pendingSeparator = "";
    return this.delta({ content });
  }

  private refusal(refusal: string): JsonObject[] {
    this.hasRefusal = true;
    return this.delta({ refusal });
  }

  /**
   * Text goes out as it comes, under each of the names that clients read; a seal follows in an entry of its
   * own, which clients merge by `index` (OpenRouter).
   */
  private reasoning(part: Extract<ChoicePart, { type: `reasoning-${string}` }>): JsonObject[] {
    if (part.type === "reasoning-end") return this.endThought(part);
    if (part.type === "reasoning-start") {
      const { id, format } = part;
      const index = this.thoughts.size;
      this.thoughts.set(part.itemIndex, {
        ...(id !== undefined && { id }),
        ...(format !== undefined && { format }),
        index,
      });
      return [];
    }
    const { text, summaryIndex } = part;
    const piece =
      summaryIndex === undefined
        ? { type: "reasoning.text", text }
        : { type: "reasoning.summary", summary: text, summary_index: summaryIndex };
    return this.delta({
      reasoning_content: text,
      reasoning: text,
      reasoning_details: [{ ...piece, ...this.thoughtNames(part.itemIndex) }],
    });
  }

  private endThought({ itemIndex, signature, encrypted, provenance }: ReasoningEnd): JsonObject[] {
    if (signature === undefined && encrypted === undefined) return [];
    const seal: ReasoningPart = {
      type: "reasoning",
      ...(signature !== undefined && { signature }),
      ...(encrypted !== undefined && { encrypted }),
      ...(provenance !== undefined && { provenance }),
    };
    this.heldSeals.push({ seal, names: this.thoughtNames(itemIndex) });
    return this.calls.size > 0 ? [] : this.releaseSeals();
  }

  private releaseSeals(callId?: string): JsonObject[] {
    const details = this.heldSeals.flatMap(({ seal, names }) =>
      encodeDetail(seal, { ...names, ...(callId !== undefined && { tool_call_id: callId }) }),
    );
    this.heldSeals = [];
    return details.length === 0 ? [] : this.delta({ reasoning_details: details });
  }

  /** Members that all entries of one thought share. */
  private thoughtNames(itemIndex: number): JsonObject {
    let names = this.thoughts.get(itemIndex);
    if (names === undefined) this.thoughts.set(itemIndex, (names = { index: this.thoughts.size }));
    return names;
  }

  private startCall(start: ToolCallStart): JsonObject[] {
    const call = { index: this.calls.size, start, hasText: false };
    this.calls.set(start.itemIndex, call);
    const { id, name, kind } = start;
    const thoughts = this.releaseSeals(id);
    // The older field holds one call; a second one cannot be told.
    if (this.legacyFunctions)
      return call.index > 0
        ? thoughts
        : [...thoughts, ...this.delta({ function_call: { name, arguments: "" } })];
    const named =
      kind === "custom" ? { custom: { name, input: "" } } : { function: { name, arguments: "" } };
    return [
      ...thoughts,
      ...this.delta({
        tool_calls: [{ index: call.index, id, type: kind, ...named, ...signatureField(start) }],
      }),
    ];
  }

  private callText({ itemIndex }: ItemPlace, text: string): JsonObject[] {
    const call = this.calls.get(itemIndex);
    if (call === undefined || text === "" || (this.legacyFunctions && call.index > 0)) return [];
    call.hasText = true;
    if (this.legacyFunctions) return this.delta({ function_call: { arguments: text } });
    const added =
      call.start.kind === "custom"
        ? { custom: { input: text } }
        : { function: { arguments: text } };
    return this.delta({ tool_calls: [{ index: call.index, ...added }] });
  }

  /** A function that got no arguments gets empty ones: clients parse the text. */
  private endCall(place: ItemPlace): JsonObject[] {
    const call = this.calls.get(place.itemIndex);
    return call === undefined || call.hasText || call.start.kind === "custom"
      ? []
      : this.callText(place, "{}");
  }

  private keepProbabilities({ content, refusal }: LogProbabilities): void {
    const pending = this.pendingProbabilities;
    this.pendingProbabilities = {
      ...((pending?.content ?? content) && {
        content: [...(pending?.content ?? []), ...(content ?? [])],
      }),
      ...((pending?.refusal ?? refusal) && {
        refusal: [...(pending?.refusal ?? []), ...(refusal ?? [])],
      }),
    };
  }

  /** An entry with this delta, after the one that gives the role. */
  private delta(delta: JsonObject): JsonObject[] {
    if (this.hasRole) return [this.entry(delta)];
    this.hasRole = true;
    const role = this.entryOf(
      { role: "assistant", content: "" },
      { logprobs: null, finish_reason: null },
    );
    return Object.keys(delta).length === 0 ? [role] : [role, this.entry(delta)];
  }

  /** An entry that takes along the log probabilities that were waiting for it. */
  private entry(delta: JsonObject, ending: JsonObject = { finish_reason: null }): JsonObject {
    const waits =
      this.pendingProbabilities !== undefined &&
      ("content" in delta || "refusal" in delta || this.finished);
    const logprobs =
      waits && this.pendingProbabilities ? encodeLogProbabilities(this.pendingProbabilities) : null;
    if (waits) this.pendingProbabilities = undefined;
    return this.entryOf(delta, { logprobs, ...ending });
  }

  private entryOf(delta: JsonObject, ending: JsonObject): JsonObject {
    return { index: this.index, delta, ...ending };
  }
}
