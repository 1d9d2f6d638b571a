import {
  reconcileFinish,
  type Finish,
  type MeteredUsage,
  type ReportedError,
  type ErrorPart,
  type ItemPlace,
  type ReasoningEnd,
  type StreamPart,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { DecodeContext } from "../dialect.ts";
import type { StreamDecoder } from "../shared/stream/stream-decoder.ts";
import { asNumber, asObject, asString } from "../shared/wire-fields.ts";
import { cutStream, malformedEvent, parseEventObject } from "../errors.ts";
import { MemberRenamer } from "../shared/schemas/member-names.ts";
import { unwrapInput } from "../shared/tools.ts";
import { decodeCitation, decodeImage, provenanceOf } from "./decode-response.ts";
import { decodeFinish, readFailure } from "./answer-fields.ts";
import { readException } from "./errors.ts";
import { readUsage } from "./usage.ts";

/** The prefix of events that are exceptions, which the event stream's decoder adds. */
const exceptionPrefix = "exception:";

/** An open content block, by the kind of item that it became. */
interface OpenBlock {
  kind: "text" | "reasoning" | "tool-call";
  place: ItemPlace;
  /** Seals of a reasoning block, known before its end. */
  seal: Pick<ReasoningEnd, "signature" | "encrypted">;
  /**
   * The arguments of a custom tool that was sent as a function; its input is known when they are
   * complete.
   */
  wrapped?: string;
  /** Renames the members of a call's arguments; absent where they have their own names. */
  renamer?: MemberRenamer;
}

/**
 * Decodes the events of a ConverseStream to canonical parts. Events are named; text and reasoning
 * have no start event, the usage follows the end in an event `metadata`, and failures are events
 * named after the exception.
 */
export class ConverseStreamDecoder implements StreamDecoder {
  latestUsage: MeteredUsage | undefined;
  private readonly blocks = new Map<number, OpenBlock>();
  private itemCount = 0;
  private hasCalls = false;
  /** The failure that the answer ended in, until its usage has come. */
  private failure: ReportedError | undefined;
  private started = false;
  private finished = false;
  private ended = false;

  constructor(private readonly context: DecodeContext = {}) {}

  decode({ event: name = "", data }: { event?: string; data: string }): StreamPart[] {
    if (this.ended) return [];
    const fields = parseEventObject(data);
    if (name.startsWith(exceptionPrefix)) {
      const error = readException(name.slice(exceptionPrefix.length), fields);
      return this.fail({ type: "error", fault: "reported", error });
    }
    if (fields === undefined) return this.fail(malformedEvent);
    switch (name) {
      case "messageStart":
        return this.start();
      case "contentBlockStart":
        return this.openCall(fields);
      case "contentBlockDelta":
        return this.fill(fields);
      case "contentBlockStop":
        return this.close(indexOf(fields));
      case "messageStop":
        return this.finish(asString(fields.stopReason));
      case "metadata":
        return this.readMetadata(fields);
      // Event types that are not known yet.
      default:
        return [];
    }
  }

  /** Ends the stream. Without `metadata`, the answer is complete once it said why it ended. */
  end(): StreamPart[] {
    if (this.ended) return [];
    return this.finished ? this.complete() : this.fail(cutStream);
  }

  private start(): StreamPart[] {
    if (this.started) return [];
    this.started = true;
    return [{ type: "response-start", id: "", model: "", createdAtSeconds: 0 }];
  }

  private openCall(event: JsonObject): StreamPart[] {
    const call = asObject(asObject(event.start)?.toolUse);
    if (call === undefined || this.finished) return [];
    const index = indexOf(event);
    const wireName = asString(call.name) ?? "";
    const alias = this.context.toolAliases?.get(wireName);
    const unwraps = alias?.unwrapsInput === true;
    const before = [...this.start(), ...this.close(index), ...this.closeTexts()];
    const block = this.open(index, "tool-call");
    if (unwraps) block.wrapped = "";
    if (alias?.members !== undefined) block.renamer = new MemberRenamer(alias.members);
    this.hasCalls = true;
    return [
      ...before,
      {
        type: "tool-call-start",
        ...block.place,
        kind: unwraps ? "custom" : "function",
        id: asString(call.toolUseId) ?? "",
        name: alias?.name ?? wireName,
        ...(alias?.namespace !== undefined && { namespace: alias.namespace }),
      },
    ];
  }

  /** Decodes a delta, whose only member names its kind. */
  private fill(event: JsonObject): StreamPart[] {
    const delta = asObject(event.delta);
    if (delta === undefined || this.finished) return [];
    const index = indexOf(event);
    const text = asString(delta.text);
    if (text !== undefined) return this.addText(index, text);
    const thought = asObject(delta.reasoningContent);
    if (thought !== undefined) return this.addThought(index, thought);
    const input = asString(asObject(delta.toolUse)?.input);
    if (input !== undefined) return this.addInput(index, input);
    const citation = decodeCitation(asObject(delta.citation));
    if (citation !== undefined) {
      const [parts, { place }] = this.ensure(index, "text");
      return [...parts, { type: "annotation", ...place, annotation: citation }];
    }
    const image = decodeImage(asObject(delta.image));
    return image === undefined
      ? []
      : [...this.start(), { type: "image", ...this.nextPlace(), image }];
  }

  private addText(index: number, text: string): StreamPart[] {
    const [parts, { place }] = this.ensure(index, "text");
    if (text !== "") parts.push({ type: "text-delta", ...place, text });
    return parts;
  }

  private addThought(index: number, thought: JsonObject): StreamPart[] {
    const [parts, { place, seal }] = this.ensure(index, "reasoning");
    const text = asString(thought.text);
    const signature = asString(thought.signature);
    const encrypted = asString(thought.redactedContent);
    if (text) parts.push({ type: "reasoning-delta", ...place, text });
    if (signature) seal.signature = (seal.signature ?? "") + signature;
    if (encrypted) seal.encrypted = (seal.encrypted ?? "") + encrypted;
    return parts;
  }

  private addInput(index: number, input: string): StreamPart[] {
    const block = this.blocks.get(index);
    if (block?.kind !== "tool-call" || input === "") return [];
    if (block.wrapped === undefined) return argued(block, block.renamer?.push(input) ?? input);
    block.wrapped += input;
    return [];
  }

  /** Returns the open block of a kind, with the parts that open it where it has no start event. */
  private ensure(
    index: number,
    kind: "text" | "reasoning",
  ): [parts: StreamPart[], block: OpenBlock] {
    const open = this.blocks.get(index);
    if (open?.kind === kind) return [[], open];
    const before = [...this.start(), ...this.close(index), ...this.closeTexts()];
    const block = this.open(index, kind);
    return [[...before, { type: `${kind}-start`, ...block.place }], block];
  }

  private open(index: number, kind: OpenBlock["kind"]): OpenBlock {
    const block: OpenBlock = { kind, place: this.nextPlace(), seal: {} };
    this.blocks.set(index, block);
    return block;
  }

  /** Closes text and reasoning that have no end event, when the next block begins. */
  private closeTexts(): StreamPart[] {
    return [...this.blocks].flatMap(([index, { kind }]) =>
      kind === "tool-call" ? [] : this.close(index),
    );
  }

  private close(index: number): StreamPart[] {
    const block = this.blocks.get(index);
    if (block === undefined) return [];
    this.blocks.delete(index);
    const { kind, place, seal, wrapped } = block;
    if (kind === "reasoning") {
      const isSealed = seal.signature !== undefined || seal.encrypted !== undefined;
      return [
        { type: "reasoning-end", ...place, ...seal, ...(isSealed && provenanceOf(this.context)) },
      ];
    }
    const end: StreamPart = { type: `${kind}-end`, ...place };
    const rest = wrapped ? unwrapInput(wrapped) : (block.renamer?.end() ?? "");
    return [...argued(block, rest), end];
  }

  private finish(stopReason: string | undefined): StreamPart[] {
    if (this.finished) return [];
    this.failure = readFailure(stopReason);
    if (this.failure !== undefined) {
      // Its usage follows.
      this.finished = true;
      return [];
    }
    this.finished = true;
    const reported: Finish | undefined = decodeFinish(stopReason);
    return [
      ...this.start(),
      ...[...this.blocks.keys()].flatMap((index) => this.close(index)),
      { type: "finish", choiceIndex: 0, finish: reconcileFinish(reported, this.hasCalls) },
    ];
  }

  /** Decodes the last event of a stream, which follows its end. */
  private readMetadata(fields: JsonObject): StreamPart[] {
    this.latestUsage = readUsage(fields.usage, fields.serviceTier) ?? this.latestUsage;
    return this.finished ? this.complete() : [];
  }

  private complete(): StreamPart[] {
    const error = this.failure;
    if (error !== undefined) return this.fail({ type: "error", fault: "reported", error });
    this.ended = true;
    return [...this.usageParts(), { type: "response-end" }];
  }

  private fail(error: ErrorPart): StreamPart[] {
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private usageParts(): StreamPart[] {
    const usage = this.latestUsage;
    return usage === undefined ? [] : [{ type: "usage", usage }];
  }

  private nextPlace(): ItemPlace {
    const place = { choiceIndex: 0, itemIndex: this.itemCount };
    this.itemCount += 1;
    return place;
  }
}

/** Returns the part of a call's arguments; none for an empty text. */
const argued = ({ place }: OpenBlock, text: string): StreamPart[] =>
  text === "" ? [] : [{ type: "tool-call-delta", ...place, arguments: text }];

const indexOf = (event: JsonObject): number => asNumber(event.contentBlockIndex) ?? 0;
