import type { JsonObject } from "../../canonical/json.ts";
import type { Annotation } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import {
  reconcileFinish,
  type Finish,
  type GatewayFacts,
  type ItemPart,
  type LogProbabilities,
  type MeteredUsage,
  type ReasoningEnd,
  type StreamPart,
  type TextDelta,
  type ToolCallStart,
} from "../../canonical/response.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { gatewayFields } from "../shared/gateway-facts.ts";
import { withoutUndefined } from "../shared/wire-fields.ts";
import {
  encodeFinish,
  encodeGrounding,
  encodeLogProbabilities,
  meanLogProbability,
} from "./answer-fields.ts";
import {
  encodeCall,
  encodeImage,
  encodeSound,
  hidesThoughts,
  nothingReported,
  pickedText,
  picksText,
  PartWriter,
} from "./encode-response.ts";
import { errorFrames } from "./errors.ts";
import { encodeUsage } from "./usage.ts";

/** Returns the frame of a chunk. Clients fail on event names and on a terminator. */
const frame = (chunk: JsonObject): string => `data: ${JSON.stringify(chunk)}\n\n`;

/**
 * Encodes canonical parts as chunks, each of which is a whole answer of its own. The last one names
 * how every candidate ended, the usage and the gateway's metadata, since nothing follows it that
 * clients would read.
 */
export class GenerateStreamEncoder implements StreamEncoder {
  private readonly candidates = new Map<number, CandidateWriter>();
  private readonly hides: boolean;
  /** Whether texts wait for their end, since only the whole says what was picked. */
  private readonly picks: boolean;
  private usage: MeteredUsage | undefined;
  private identity: JsonObject = {};
  private textEnd = "";
  private ended = false;

  constructor(private readonly context: ResponseContext = {}) {
    this.hides = hidesThoughts(context);
    this.picks = picksText(context);
    this.name({ id: "", model: "" });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    switch (part.type) {
      case "response-start":
        this.name(part);
        return [];
      case "usage":
        this.usage = part.usage;
        return [];
      case "response-end":
        return this.end(part.gateway);
      case "error":
        this.ended = true;
        return errorFrames(part.error);
      case "logprobs":
        this.candidate(part.choiceIndex).noteProbabilities(part);
        return [];
      case "finish":
        this.candidate(part.choiceIndex).finish = part.finish;
        return [];
      case "text-delta":
        return this.text(part);
      default:
        return this.parts(part.choiceIndex, this.candidate(part.choiceIndex).add(part));
    }
  }

  private name({ id, model }: { id: string; model: string }): void {
    this.identity = {
      modelVersion: this.context.model ?? model,
      responseId: this.context.id ?? id,
    };
    this.textEnd = `,${JSON.stringify(this.identity).slice(1)}\n\n`;
  }

  private candidate(index: number): CandidateWriter {
    let candidate = this.candidates.get(index);
    if (candidate === undefined) {
      candidate = new CandidateWriter(this.hides);
      this.candidates.set(index, candidate);
    }
    return candidate;
  }

  /** Returns the frame of a text; most events are one, so that it is written by hand. */
  private text({ choiceIndex, text, json }: TextDelta): string[] {
    if (text === "") return [];
    if (this.picks) {
      this.candidate(choiceIndex).picked += text;
      return [];
    }
    const seal = this.candidate(choiceIndex).say(text);
    if (seal !== undefined) return this.parts(choiceIndex, [{ text, ...seal }]);
    const words = json ?? JSON.stringify(text);
    return [
      `data: {"candidates":[{"content":{"parts":[{"text":${words}}],"role":"model"},"index":${choiceIndex}}]${this.textEnd}`,
    ];
  }

  private parts(index: number, parts: readonly JsonObject[]): string[] {
    if (parts.length === 0) return [];
    return [
      frame({ candidates: [{ content: { parts, role: "model" }, index }], ...this.identity }),
    ];
  }

  private end(gateway: GatewayFacts | undefined): string[] {
    this.ended = true;
    if (this.candidates.size === 0) this.candidate(0);
    const candidates = [...this.candidates]
      .sort(([one], [other]) => one - other)
      .map(([index, candidate]) => candidate.end(index));
    return [
      frame({
        candidates,
        usageMetadata: encodeUsage(this.usage ?? nothingReported, gateway),
        ...this.identity,
        ...gatewayFields(gateway),
      }),
    ];
  }
}

/** A call whose arguments are still coming: Google's clients expect each in one part. */
interface OpenCall {
  start: ToolCallStart;
  text: string;
}

/** A block of reasoning that is still coming. */
interface OpenThought {
  text: string;
  summary: string[];
  start: { id?: string; format?: string };
}

/** Writes the parts of one candidate. */
class CandidateWriter {
  finish: Finish | undefined;
  /** The text of a client that wants what it says was picked. */
  picked = "";
  private readonly writer: PartWriter;
  private readonly calls = new Map<number, OpenCall>();
  private readonly thoughts = new Map<number, OpenThought>();
  private annotations: Annotation[] = [];
  private probabilities: LogProbabilities["content"];
  private said = "";
  private hasThought = false;
  private hasCalls = false;

  constructor(private readonly hides: boolean) {
    this.writer = new PartWriter(hides);
  }

  /** Notes a piece of text. Returns the seal that it bears; undefined where there is none. */
  say(text: string): JsonObject | undefined {
    this.said += text;
    if (!this.hasThought) return undefined;
    this.hasThought = false;
    return this.writer.seal();
  }

  noteProbabilities({ content }: LogProbabilities): void {
    if (content !== undefined) this.probabilities = [...(this.probabilities ?? []), ...content];
  }

  /** Returns the wire parts that can be written by now. */
  add(part: Exclude<ItemPart, TextDelta>): JsonObject[] {
    switch (part.type) {
      case "reasoning-start":
        this.thoughts.set(part.itemIndex, { text: "", summary: [], start: part });
        return [];
      case "reasoning-delta":
        return this.think(part);
      case "reasoning-end":
        this.endThought(part);
        return [];
      case "tool-call-start":
        this.calls.set(part.itemIndex, { start: part, text: "" });
        return [];
      case "tool-call-delta": {
        const call = this.calls.get(part.itemIndex);
        if (call !== undefined) call.text += part.arguments;
        return [];
      }
      case "tool-call-end":
        return this.endCall(part.itemIndex);
      case "refusal-delta":
        return part.refusal === "" ? [] : [{ text: part.refusal }];
      case "annotation":
        this.annotations.push(part.annotation);
        return [];
      case "audio-delta":
        return encodeSound(part);
      case "image":
        return encodeImage(part.image);
      case "opaque":
        return part.part.dialect === "google-generate" ? [part.part.value] : [];
      default:
        return [];
    }
  }

  /** Returns the candidate of the last chunk. */
  end(index: number): JsonObject {
    const open = [...this.calls.keys()].flatMap((itemIndex) => this.endCall(itemIndex));
    const picked =
      this.picked === "" ? [] : [{ text: pickedText(this.picked), ...this.writer.seal() }];
    const parts = [...picked, ...open, ...this.writer.finish()];
    return withoutUndefined<JsonObject>({
      content: { parts: parts.length === 0 ? [{ text: "" }] : parts, role: "model" },
      ...encodeFinish(reconcileFinish(this.finish, this.hasCalls)),
      index,
      ...encodeGrounding(this.annotations, this.said),
      avgLogprobs: this.probabilities && meanLogProbability({ content: this.probabilities }),
      logprobsResult: this.probabilities && encodeLogProbabilities({ content: this.probabilities }),
    });
  }

  private think({
    itemIndex,
    text,
    summaryIndex,
  }: {
    itemIndex: number;
    text: string;
    summaryIndex?: number;
  }): JsonObject[] {
    const thought = this.thoughts.get(itemIndex);
    if (thought === undefined || text === "") return [];
    if (summaryIndex === undefined) {
      thought.text += text;
      return this.shown(text);
    }
    const isNext = summaryIndex > 0 && thought.summary[summaryIndex] === undefined;
    thought.summary[summaryIndex] = (thought.summary[summaryIndex] ?? "") + text;
    return this.shown(isNext ? `\n\n${text}` : text);
  }

  private shown(text: string): JsonObject[] {
    return this.hides ? [] : [{ text, thought: true }];
  }

  private endThought(end: ReasoningEnd): void {
    const thought = this.thoughts.get(end.itemIndex);
    this.thoughts.delete(end.itemIndex);
    const { text = "", summary = [], start = {} } = thought ?? {};
    this.hasThought = true;
    this.writer.note(
      withoutUndefined<ReasoningPart>({
        type: "reasoning",
        text: text === "" ? undefined : text,
        summary: summary.length === 0 ? undefined : summary,
        id: start.id,
        format: start.format,
        signature: end.signature,
        encrypted: end.encrypted,
        provenance: end.provenance,
      }),
    );
  }

  private endCall(itemIndex: number): JsonObject[] {
    const call = this.calls.get(itemIndex);
    if (call === undefined) return [];
    this.calls.delete(itemIndex);
    this.hasCalls = true;
    this.hasThought = false;
    const { start, text } = call;
    return [
      { functionCall: encodeCall({ ...start, arguments: text }), ...this.writer.seal(start) },
    ];
  }
}
