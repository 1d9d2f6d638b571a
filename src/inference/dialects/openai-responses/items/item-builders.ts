import type { Annotation } from "../../../canonical/message.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { TokenLogProbability, ToolCallStart } from "../../../canonical/response.ts";
import type { Provenance, ReasoningPart } from "../../../canonical/reasoning.ts";
import { encodeTokens } from "../../shared/openai-fields.ts";
import { encodeAnnotation, sealedContent, summaryParts } from "../answer-fields.ts";

/**
 * Reports one step by the type of its event, and its members or their JSON text. Whole answers are
 * built without it.
 */
export type Emit = (type: string, members: JsonObject | string) => void;

/** The place and id of an item. */
export interface ItemHead {
  id: string;
  outputIndex: number;
  /** Absent where no stream is written. */
  emit: Emit | undefined;
}

/** The end of an item: complete or cut. */
export type ItemStatus = "completed" | "incomplete";

/** An item of the output while it is being built. */
export interface ItemBuilder {
  /** Ends the item; later calls do nothing. */
  close(status: ItemStatus): void;
  /** Returns the item as far as it came. */
  item(status: string): JsonObject;
}

interface OpenPart {
  type: "output_text" | "refusal";
  /** The canonical item that fills it. */
  key: number;
  text: string;
  annotations: JsonObject[];
  /** Citations of the whole text, which wait for its end. */
  unplaced: Annotation[];
  logprobs: JsonObject[];
}

const wirePart = ({ type, text, annotations, logprobs }: OpenPart): JsonObject =>
  type === "refusal" ? { type, refusal: text } : { type, text, annotations, logprobs };

/** Returns a message that is one text. */
export const plainMessage = ({
  id,
  status,
  text,
}: {
  id: string;
  status: string;
  text: string;
}): JsonObject => ({
  id,
  type: "message",
  status,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
});

/** A message, whose parts open and close one after another. */
export class MessageBuilder implements ItemBuilder {
  private readonly content: OpenPart[] = [];
  private partIsOpen = false;
  /** The JSON text of the members that give the open part's place. */
  private placeText = "";
  private closed = false;

  constructor(
    private readonly head: ItemHead,
    readonly phase: string | undefined,
  ) {
    head.emit?.("response.output_item.added", {
      output_index: head.outputIndex,
      item: this.item("in_progress"),
    });
  }

  text(
    key: number,
    {
      text,
      json,
      tokens,
    }: { text: string; json?: string | undefined; tokens: readonly TokenLogProbability[] },
  ): void {
    const part = this.part("output_text", key);
    part.text += text;
    if (tokens.length === 0) {
      // Most events are this one, so it is written without an object.
      this.head.emit?.(
        "response.output_text.delta",
        `${this.placeText},"delta":${json ?? JSON.stringify(text)},"logprobs":[]`,
      );
      return;
    }
    const logprobs = encodeTokens(tokens);
    part.logprobs.push(...logprobs);
    this.head.emit?.("response.output_text.delta", { ...this.place(), delta: text, logprobs });
  }

  refusal(key: number, refusal: string): void {
    this.part("refusal", key).text += refusal;
    this.head.emit?.("response.refusal.delta", { ...this.place(), delta: refusal });
  }

  /** Adds a citation; for a stream it comes too late where its part was sent already. */
  annotate(key: number, annotation: Annotation): void {
    const part = this.partIsOpen ? this.content.at(-1) : undefined;
    if (part?.key !== key || part.type !== "output_text") return;
    if (annotation.type === "url" && annotation.endIndex === undefined)
      part.unplaced.push(annotation);
    else this.cite(part, annotation);
  }

  private cite(part: OpenPart, annotation: Annotation): void {
    for (const wire of encodeAnnotation(annotation, part.text)) {
      this.head.emit?.("response.output_text.annotation.added", {
        ...this.place(),
        annotation_index: part.annotations.length,
        annotation: wire,
      });
      part.annotations.push(wire);
    }
  }

  close(status: ItemStatus): void {
    if (this.closed) return;
    this.closed = true;
    this.closePart();
    this.head.emit?.("response.output_item.done", {
      output_index: this.head.outputIndex,
      item: this.item(status),
    });
  }

  item(status: string): JsonObject {
    return {
      id: this.head.id,
      type: "message",
      status,
      role: "assistant",
      content: this.content.map(wirePart),
      ...(this.phase !== undefined && { phase: this.phase }),
    };
  }

  private part(type: OpenPart["type"], key: number): OpenPart {
    const current = this.partIsOpen ? this.content.at(-1) : undefined;
    if (current?.key === key && current.type === type) return current;
    this.closePart();
    const part: OpenPart = { type, key, text: "", annotations: [], unplaced: [], logprobs: [] };
    // Reported before it is filled, from a copy that stays empty.
    const empty = wirePart({ ...part, annotations: [], logprobs: [] });
    this.content.push(part);
    this.partIsOpen = true;
    this.placeText = JSON.stringify(this.place()).slice(1, -1);
    this.head.emit?.("response.content_part.added", { ...this.place(), part: empty });
    return part;
  }

  private closePart(): void {
    const part = this.content.at(-1);
    if (!this.partIsOpen || part === undefined) return;
    for (const annotation of part.unplaced) this.cite(part, annotation);
    const done =
      part.type === "refusal"
        ? { refusal: part.text }
        : { text: part.text, logprobs: part.logprobs };
    this.head.emit?.(
      part.type === "refusal" ? "response.refusal.done" : "response.output_text.done",
      { ...this.place(), ...done },
    );
    this.head.emit?.("response.content_part.done", { ...this.place(), part: wirePart(part) });
    this.partIsOpen = false;
  }

  private place(): JsonObject {
    return {
      item_id: this.head.id,
      output_index: this.head.outputIndex,
      content_index: this.content.length - 1,
    };
  }
}

/** A call of a function or of a custom tool. */
export class CallBuilder implements ItemBuilder {
  /** Whether the call is complete; it is closed when it is known whether the answer was cut. */
  ended = false;
  private text = "";
  private closed = false;

  constructor(
    private readonly head: ItemHead,
    private readonly start: ToolCallStart,
  ) {
    head.emit?.("response.output_item.added", {
      output_index: head.outputIndex,
      item: this.item("in_progress"),
    });
  }

  append(text: string): void {
    if (text === "" || this.closed) return;
    this.text += text;
    this.head.emit?.(`${this.stem}.delta`, { ...this.place(), delta: text });
  }

  close(status: ItemStatus): void {
    if (this.closed) return;
    // A function without arguments gets empty ones, since clients parse the text.
    if (this.start.kind === "function" && this.text.trim() === "") this.append("{}");
    this.closed = true;
    const done =
      this.start.kind === "custom"
        ? { input: this.text }
        : { name: this.start.name, arguments: this.text };
    this.head.emit?.(`${this.stem}.done`, { ...this.place(), ...done });
    this.head.emit?.("response.output_item.done", {
      output_index: this.head.outputIndex,
      item: this.item(status),
    });
  }

  item(status: string): JsonObject {
    const { kind, id, name, namespace } = this.start;
    return {
      id: this.head.id,
      type: kind === "custom" ? "custom_tool_call" : "function_call",
      status,
      call_id: id,
      name,
      ...(namespace !== undefined && { namespace }),
      ...(kind === "custom" ? { input: this.text } : { arguments: this.text }),
    };
  }

  private get stem(): string {
    return this.start.kind === "custom"
      ? "response.custom_tool_call_input"
      : "response.function_call_arguments";
  }

  private place(): JsonObject {
    return { item_id: this.head.id, output_index: this.head.outputIndex };
  }
}

/** The seals that come with a reasoning block's end. */
interface Seals {
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
}

/**
 * A reasoning block, shown as summaries, which is what clients display: each summary of its maker's
 * is one, and the reasoning itself is one.
 */
export class ReasoningBuilder implements ItemBuilder {
  private readonly summaries: string[] = [];
  private readonly part: ReasoningPart;
  /** The open summary: its maker's index, or the reasoning itself. */
  private open: number | "text" | undefined;
  private encryptedContent: string | undefined;
  private closed = false;

  constructor(
    private readonly head: ItemHead,
    { format }: { format?: string },
  ) {
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

  /** Keeps the reasoning in its maker's form, for the seal that covers it. */
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
