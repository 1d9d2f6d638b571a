import type { JsonObject } from "../../canonical/json.ts";
import { sealWithProvenance } from "../../canonical/reasoning.ts";
import type { ItemPart, ReasoningEnd, ToolCallStart } from "../../canonical/stream-part.ts";
import { asObject } from "../request-fields.ts";
import { wrapInput } from "../tool-aliases.ts";
import { encodeCitation } from "./citation-fields.ts";
import { deltaFrame, frame } from "./frame.ts";
import { legalCallId } from "./legal-call-id.ts";
import { fieldsOfOwn } from "./own-fields.ts";

/** Writes the parts of one item after another as events of numbered blocks. Blocks are opened when they have something to say. */
export class BlockWriter {
  /** The item has ended, or may end at any time; only a citation may still follow. */
  isDone = false;
  /** The item's block is closed, or it never had one and never will. */
  isClosed = false;
  hasCalls = false;
  private index = -1;
  private isOpen = false;
  private summaryIndex: number | undefined;
  /** Input of a custom tool, which goes out when it is whole. */
  private customInput: string | undefined;

  write(part: ItemPart): string[] {
    this.isClosed = false;
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.begin();
        return [];
      case "text-delta":
        return this.text(part.text);
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
        return part.part.dialect === "anthropic-messages"
          ? this.whole(part.part.value)
          : this.nothing();
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

  private text(text: string): string[] {
    if (text === "") return [];
    const frames = this.isOpen ? [] : this.open({ type: "text", text: "" });
    frames.push(deltaFrame(this.index, { type: "text_delta", key: "text", text }));
    return frames;
  }

  private citation(citation: JsonObject): string[] {
    return [
      ...this.open({ type: "text", text: "" }),
      this.delta({ type: "citations_delta", citation }),
    ];
  }

  /** Words of a part that has no end of its own. */
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

  /** The seal comes last and whole. What is sealed as a whole, its words and all, is a block of its own. */
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
    return [deltaFrame(this.index, { type: "input_json_delta", key: "partial_json", text })];
  }

  private endCall(): string[] {
    const input =
      this.customInput === undefined
        ? []
        : [this.delta({ type: "input_json_delta", partial_json: wrapInput(this.customInput) })];
    this.customInput = undefined;
    return [...input, ...this.close()];
  }

  /** A block that is there as a whole; the input of a call that the provider runs comes as a delta, which is where clients look for it. */
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
