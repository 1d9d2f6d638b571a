import type { JsonObject } from "../../canonical/json.ts";
import type { ToolCallStart } from "../../canonical/stream-part.ts";
import type { ItemBuilder, ItemHead, ItemStatus } from "./message-builder.ts";

/** A call of a function or of a custom tool. */
export class CallBuilder implements ItemBuilder {
  /** The call is whole; it is told as such when it is known whether the answer was cut. */
  ended = false;
  private readonly head: ItemHead;
  private readonly start: ToolCallStart;
  private text = "";
  private closed = false;

  constructor(head: ItemHead, start: ToolCallStart) {
    this.head = head;
    this.start = start;
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
    // A function that got no arguments gets empty ones: clients parse the text.
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
