import type { Annotation } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { TokenLogProbability } from "../../canonical/log-probability.ts";
import { encodeAnnotation } from "./annotation-fields.ts";
import { encodeTokens } from "../openai-token-fields.ts";

/** Tells of one step, in the words of the stream, by its members or their JSON text; whole answers are built without listening. */
export type Emit = (type: string, members: JsonObject | string) => void;

/** Where an item stands and how it is called. */
export interface ItemHead {
  id: string;
  outputIndex: number;
  /** Absent where nobody listens. */
  emit: Emit | undefined;
}

/** How an item ended. */
export type ItemStatus = "completed" | "incomplete";

/** An item of the output while it is being made. */
export interface ItemBuilder {
  /** Ends the item; later calls do nothing. */
  close(status: ItemStatus): void;
  /** The item as far as it came. */
  item(status: string): JsonObject;
}

interface OpenPart {
  type: "output_text" | "refusal";
  /** The canonical item that fills it. */
  key: number;
  text: string;
  annotations: JsonObject[];
  logprobs: JsonObject[];
}

const wirePart = ({ type, text, annotations, logprobs }: OpenPart): JsonObject =>
  type === "refusal" ? { type, refusal: text } : { type, text, annotations, logprobs };

/** A message that is one text. */
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

/** A message: its parts open and close one after the other. */
export class MessageBuilder implements ItemBuilder {
  readonly phase: string | undefined;
  private readonly head: ItemHead;
  private readonly content: OpenPart[] = [];
  private partIsOpen = false;
  /** JSON text of the members that tell where the open part stands. */
  private placeText = "";
  private closed = false;

  constructor(head: ItemHead, phase: string | undefined) {
    this.head = head;
    this.phase = phase;
    head.emit?.("response.output_item.added", {
      output_index: head.outputIndex,
      item: this.item("in_progress"),
    });
  }

  text(
    key: number,
    { text, tokens }: { text: string; tokens: readonly TokenLogProbability[] },
  ): void {
    const part = this.part("output_text", key);
    part.text += text;
    if (tokens.length === 0) {
      // What most events are: written without an object.
      this.head.emit?.(
        "response.output_text.delta",
        `${this.placeText},"delta":${JSON.stringify(text)},"logprobs":[]`,
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

  /** A citation; one for a part that has been told already comes too late for a stream. */
  annotate(key: number, annotation: Annotation): void {
    const part = this.partIsOpen ? this.content.at(-1) : undefined;
    if (part?.key !== key || part.type !== "output_text") return;
    for (const wire of encodeAnnotation(annotation)) {
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
    const part: OpenPart = { type, key, text: "", annotations: [], logprobs: [] };
    // Told before it is filled, from a copy that stays empty.
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
