import { brand } from "../../../platform/kernel/brand.ts";
import {
  reconcileFinish,
  type Finish,
  type GatewayFacts,
  type MeteredUsage,
  type ItemPart,
  type ReasoningEnd,
  type ResponseStart,
  type StreamPart,
  type ToolCallStart,
} from "../../canonical/response.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { sealWithProvenance } from "../../canonical/reasoning.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { gatewayFields } from "../shared/gateway-facts.ts";
import { asObject } from "../shared/wire-fields.ts";
import { wrapInput } from "../shared/tools.ts";
import {
  encodeCitation,
  encodeFinish,
  withRefusal,
  deltaFrame,
  frame,
  fieldsOfOwn,
  legalCallId,
  opaqueBlocks,
} from "./answer-fields.ts";
import { errorFrame } from "./errors.ts";
import { encodeUsage } from "./usage.ts";

/**
 * Encodes canonical parts as the events of a Messages stream: `message_start`, the blocks one after
 * another, `message_delta` with the reason and the usage once both are known, and `message_stop`
 * with the gateway's metadata. Nothing follows an error.
 */
export class MessagesStreamEncoder implements StreamEncoder {
  private readonly blocks: BlockSequence;
  private usage: MeteredUsage | undefined;
  private finish: Finish | undefined;
  private refused = false;
  private started = false;
  private ended = false;

  constructor(private readonly context: ResponseContext = {}) {
    this.blocks = new BlockSequence({
      hidesThoughts: context.request?.reasoning?.exclude === true,
    });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    switch (part.type) {
      case "response-start":
        return this.start(part);
      case "usage":
        this.usage = part.usage;
        return [];
      case "response-end":
        return this.end(part.gateway);
      case "error":
        this.ended = true;
        return [errorFrame(part.error)];
      case "logprobs":
        return [];
      case "finish":
        if (part.choiceIndex === 0) this.finish = part.finish;
        return this.startIfNone();
      // Messages has one answer.
      default:
        return part.choiceIndex === 0 && this.finish === undefined ? this.add(part) : [];
    }
  }

  private add(part: ItemPart): string[] {
    this.refused ||= part.type === "refusal-delta" && part.refusal !== "";
    return this.started ? this.blocks.add(part) : [...this.startIfNone(), ...this.blocks.add(part)];
  }

  private start({ id, model }: Pick<ResponseStart, "id" | "model">): string[] {
    if (this.started) return [];
    this.started = true;
    return [
      frame({
        type: "message_start",
        message: {
          id: this.context.id ?? id,
          type: "message",
          role: "assistant",
          model: this.context.model ?? model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          // LangChain reads the input tokens only here.
          usage: { input_tokens: this.context.inputTokens ?? 0, output_tokens: 0 },
        },
        ...gatewayFields(this.context.gateway),
      }),
    ];
  }

  private startIfNone(): string[] {
    return this.started ? [] : this.start({ id: "", model: "" });
  }

  private end(gateway: GatewayFacts | undefined): string[] {
    const opened = this.startIfNone();
    const blocks = this.blocks.close();
    this.ended = true;
    const { metadata, ...facts } = gateway ?? {};
    const finish = withRefusal(reconcileFinish(this.finish, this.blocks.hasCalls), this.refused);
    return [
      ...opened,
      ...blocks,
      frame({
        type: "message_delta",
        delta: encodeFinish(finish),
        usage: encodeUsage(this.usage ?? nothingReported, facts),
        ...(this.context.gateway === undefined && gatewayFields(facts)),
      }),
      frame({
        type: "message_stop",
        ...(metadata !== undefined && { [brand.metadataKey]: metadata }),
      }),
    ];
  }
}

/** The usage where none was reported, since clients throw without one. */
const nothingReported = { usage: {}, estimated: true, clamped: false };

/**
 * Orders the items of an answer one after another: Messages clients know one open block at a time
 * and throw at a second one. Parts of an item wait while another is still being written.
 */
class BlockSequence {
  private readonly writer: BlockWriter;
  private readonly hidesThoughts: boolean;
  private readonly waiting = new Map<number, ItemPart[]>();
  private readonly closed = new Set<number>();
  private current: number | undefined;
  /** Whether the latest item that was opened is a text, or reasoning after one. */
  private endsInText = false;
  /** Reasoning after a text, which is written only where something else follows it. */
  private late: ItemPart[] = [];

  constructor({ hidesThoughts }: { hidesThoughts: boolean }) {
    this.hidesThoughts = hidesThoughts;
    this.writer = new BlockWriter();
  }

  /** Whether a call has been announced. */
  get hasCalls(): boolean {
    return this.writer.hasCalls;
  }

  /**
   * Returns the frames that can be written by now. Agents take the last block for the answer
   * (`claude -p` prints nothing where that is no text), so reasoning after a text waits for what
   * follows it.
   */
  add(part: ItemPart): string[] {
    if (part.type.startsWith("reasoning")) {
      if (this.hidesThoughts) return [];
      if (!this.endsInText) return this.place(part);
      this.late.push(part);
      return [];
    }
    this.endsInText = endsInText(part, this.endsInText);
    const [first] = this.late;
    if (first === undefined || part.itemIndex < first.itemIndex) return this.place(part);
    const late = this.late;
    this.late = [];
    return [...late, part].flatMap((each) => this.place(each));
  }

  private place(part: ItemPart): string[] {
    const { itemIndex } = part;
    if (this.closed.has(itemIndex)) return [];
    if (this.current === itemIndex && this.waiting.size === 0) return this.write(part);
    const frames: string[] = [];
    // A block that takes no more text is closed only now, since a citation may follow the end of
    // its text.
    if (this.isOther(itemIndex) && this.writer.isDone)
      frames.push(...this.closeCurrent(), ...this.advance());
    if (this.isOther(itemIndex)) {
      this.waiting.set(itemIndex, [...(this.waiting.get(itemIndex) ?? []), part]);
      return frames;
    }
    return [...frames, ...this.write(part), ...this.advance()];
  }

  /** Writes everything that waits and closes the last block, when the answer is complete. */
  close(): string[] {
    const frames: string[] = [];
    while (this.current !== undefined || this.waiting.size > 0)
      frames.push(...this.closeCurrent(), ...this.takeNext());
    return frames;
  }

  /** Returns whether another item is being written. */
  private isOther(itemIndex: number): boolean {
    return this.current !== undefined && this.current !== itemIndex;
  }

  private write(part: ItemPart): string[] {
    this.current = part.itemIndex;
    const frames = this.writer.write(part);
    if (this.writer.isClosed) this.forgetCurrent();
    return frames;
  }

  /**
   * Writes items that have waited, in the order in which they were opened, up to one that is still
   * incomplete.
   */
  private advance(): string[] {
    const frames: string[] = [];
    while (this.waiting.size > 0 && (this.current === undefined || this.writer.isDone)) {
      frames.push(...this.closeCurrent(), ...this.takeNext());
    }
    return frames;
  }

  private takeNext(): string[] {
    const [next] = this.waiting;
    if (next === undefined) return [];
    this.waiting.delete(next[0]);
    return next[1].flatMap((part) => this.write(part));
  }

  private closeCurrent(): string[] {
    if (this.current === undefined) return [];
    this.forgetCurrent();
    return this.writer.close();
  }

  private forgetCurrent(): void {
    if (this.current !== undefined) this.closed.add(this.current);
    this.current = undefined;
  }
}

/** Returns whether an answer ends in a text once a part was added that is no reasoning. */
function endsInText({ type }: ItemPart, before: boolean): boolean {
  if (type === "text-delta" || type === "refusal-delta" || type === "audio-delta") return true;
  return type === "tool-call-start" || type === "opaque" ? false : before;
}

/**
 * Writes the parts of one item after another as events of numbered blocks. A block is opened when
 * it has content.
 */
class BlockWriter {
  /**
   * Whether the item has ended or may end at any time, so that only a citation may still follow.
   */
  isDone = false;
  /** Whether the item's block is closed, or it has none and never will. */
  isClosed = false;
  hasCalls = false;
  private index = -1;
  private isOpen = false;
  private summaryIndex: number | undefined;
  /** The input of a custom tool, which is written when it is complete. */
  private customInput: string | undefined;

  write(part: ItemPart): string[] {
    this.isClosed = false;
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.begin();
        return [];
      case "text-delta":
        return this.text(part.text, part.json);
      case "text-end":
        this.isDone = true;
        return [];
      case "annotation":
        return encodeCitation(part.annotation).flatMap((citation) => this.citation(citation));
      case "refusal-delta":
        return this.loneText(part.refusal);
      case "audio-delta":
        return this.loneText(part.transcript ?? "");
      case "reasoning-delta":
        return this.thought(part);
      case "reasoning-end":
        return this.endThought(part);
      case "tool-call-start":
        return this.startCall(part);
      case "tool-call-delta":
        return this.callText(part.arguments);
      case "tool-call-end":
        return this.endCall();
      case "opaque":
        return this.wholes(opaqueBlocks(part.part));
      case "image":
        return this.nothing();
    }
  }

  /** Ends the block where one is open. */
  close(): string[] {
    const wasOpen = this.isOpen;
    const rest = this.customInput === undefined ? [] : this.endCall();
    this.begin();
    this.isClosed = true;
    return wasOpen && rest.length === 0
      ? [frame({ type: "content_block_stop", index: this.index })]
      : rest;
  }

  private begin(): void {
    this.isDone = false;
    this.isOpen = false;
    this.summaryIndex = undefined;
    this.customInput = undefined;
  }

  private nothing(): string[] {
    this.isClosed = true;
    return [];
  }

  private open(block: JsonObject): string[] {
    if (this.isOpen) return [];
    this.isOpen = true;
    this.index += 1;
    return [frame({ type: "content_block_start", index: this.index, content_block: block })];
  }

  private delta(delta: JsonObject): string {
    return frame({ type: "content_block_delta", index: this.index, delta });
  }

  private text(text: string, json = JSON.stringify(text)): string[] {
    if (text === "") return [];
    const frames = this.isOpen ? [] : this.open({ type: "text", text: "" });
    frames.push(deltaFrame(this.index, { type: "text_delta", key: "text", json }));
    return frames;
  }

  private citation(citation: JsonObject): string[] {
    return [
      ...this.open({ type: "text", text: "" }),
      this.delta({ type: "citations_delta", citation }),
    ];
  }

  /** Writes the text of a part that has no end of its own. */
  private loneText(text: string): string[] {
    this.isDone = true;
    return this.text(text);
  }

  private thought({ text, summaryIndex }: { text: string; summaryIndex?: number }): string[] {
    if (text === "") return [];
    const apart =
      summaryIndex !== undefined &&
      this.summaryIndex !== undefined &&
      summaryIndex !== this.summaryIndex;
    this.summaryIndex = summaryIndex;
    return [
      ...this.openThought(),
      this.delta({ type: "thinking_delta", thinking: (apart ? "\n\n" : "") + text }),
    ];
  }

  private openThought(): string[] {
    return this.open({ type: "thinking", thinking: "", signature: "" });
  }

  /**
   * Ends a reasoning block. The seal comes last and complete. Reasoning that is sealed as a whole
   * is a block of its own.
   */
  private endThought({ signature, encrypted, provenance }: ReasoningEnd): string[] {
    const sealed =
      signature === undefined
        ? []
        : [
            ...this.openThought(),
            this.delta({
              type: "signature_delta",
              signature: sealWithProvenance(signature, provenance),
            }),
          ];
    const frames = [...sealed, ...this.close()];
    if (encrypted === undefined) return frames;
    return [
      ...frames,
      ...this.whole({ type: "redacted_thinking", data: sealWithProvenance(encrypted, provenance) }),
    ];
  }

  private startCall(call: ToolCallStart): string[] {
    this.begin();
    this.hasCalls = true;
    if (call.kind === "custom") this.customInput = "";
    return this.open({
      type: "tool_use",
      id: legalCallId(call.id),
      name: call.name,
      input: {},
      ...fieldsOfOwn(call.extensions),
    });
  }

  private callText(text: string): string[] {
    if (this.customInput !== undefined) {
      this.customInput += text;
      return [];
    }
    if (text === "" || !this.isOpen) return [];
    const json = JSON.stringify(text);
    return [deltaFrame(this.index, { type: "input_json_delta", key: "partial_json", json })];
  }

  private endCall(): string[] {
    const input =
      this.customInput === undefined
        ? []
        : [this.delta({ type: "input_json_delta", partial_json: wrapInput(this.customInput) })];
    this.customInput = undefined;
    return [...input, ...this.close()];
  }

  private wholes(blocks: readonly JsonObject[]): string[] {
    return blocks.length === 0 ? this.nothing() : blocks.flatMap((block) => this.whole(block));
  }

  /**
   * Writes a complete block. The input of a call that the provider runs is sent as a delta, where
   * clients look for it.
   */
  private whole(block: JsonObject): string[] {
    const input = asObject(block.input);
    const start = this.open(input === undefined ? block : { ...block, input: {} });
    const deltas =
      input === undefined
        ? []
        : [this.delta({ type: "input_json_delta", partial_json: JSON.stringify(input) })];
    return [...start, ...deltas, ...this.close()];
  }
}
