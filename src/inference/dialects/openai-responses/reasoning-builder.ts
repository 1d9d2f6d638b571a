import type { JsonObject } from "../../canonical/json.ts";
import type { Provenance, ReasoningPart } from "../../canonical/reasoning.ts";
import type { ItemBuilder, ItemHead } from "./message-builder.ts";
import { sealedContent, summaryParts } from "./reasoning-item.ts";

/** What a thought's end brings. */
export interface Seals {
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
}

/**
 * A thought, shown as summaries, which is what clients display: each summary of its maker's is one, and
 * the thought itself is one.
 */
export class ReasoningBuilder implements ItemBuilder {
  private readonly head: ItemHead;
  private readonly summaries: string[] = [];
  private readonly part: ReasoningPart;
  /** Which summary is open: its index with its maker, or the thought itself. */
  private open: number | "text" | undefined;
  private encryptedContent: string | undefined;
  private closed = false;

  constructor(head: ItemHead, { format }: { format?: string }) {
    this.head = head;
    this.part = { type: "reasoning", ...(format !== undefined && { format }) };
    head.emit?.("response.output_item.added", {
      output_index: head.outputIndex,
      item: this.item(),
    });
  }

  think(text: string, summaryIndex: number | undefined): void {
    const key = summaryIndex ?? "text";
    if (this.open !== key) {
      this.closeSummary();
      this.open = key;
      this.summaries.push("");
      this.head.emit?.("response.reasoning_summary_part.added", {
        ...this.place(),
        part: { type: "summary_text", text: "" },
      });
    }
    const last = this.summaries.length - 1;
    this.summaries[last] += text;
    this.keep(text, summaryIndex);
    this.head.emit?.("response.reasoning_summary_text.delta", { ...this.place(), delta: text });
  }

  seal(seals: Seals): void {
    this.encryptedContent = sealedContent({ ...this.part, ...seals });
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.closeSummary();
    this.head.emit?.("response.output_item.done", {
      output_index: this.head.outputIndex,
      item: this.item(),
    });
  }

  item(): JsonObject {
    return {
      id: this.head.id,
      type: "reasoning",
      summary: summaryParts(this.summaries),
      ...(this.encryptedContent !== undefined && { encrypted_content: this.encryptedContent }),
    };
  }

  /** Remembers the thought as its maker has it, for the seal over it. */
  private keep(text: string, summaryIndex: number | undefined): void {
    if (summaryIndex === undefined) {
      this.part.text = (this.part.text ?? "") + text;
      return;
    }
    const summary = [...(this.part.summary ?? [])];
    while (summary.length <= summaryIndex) summary.push("");
    summary[summaryIndex] += text;
    this.part.summary = summary;
  }

  private closeSummary(): void {
    if (this.open === undefined) return;
    const text = this.summaries.at(-1) ?? "";
    this.head.emit?.("response.reasoning_summary_text.done", { ...this.place(), text });
    this.head.emit?.("response.reasoning_summary_part.done", {
      ...this.place(),
      part: { type: "summary_text", text },
    });
    this.open = undefined;
  }

  private place(): JsonObject {
    return {
      item_id: this.head.id,
      output_index: this.head.outputIndex,
      summary_index: this.summaries.length - 1,
    };
  }
}
