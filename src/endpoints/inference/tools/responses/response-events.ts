import { RoundStream, type StreamedRounds } from "../round-stream.ts";
import {
  endIn,
  eventsIn,
  isTerminal,
  type ResponseItem,
  type ResponseRecord,
} from "../../../../inference/responses/stored-response.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { citationsOf, citingItem, citingPart, startedCallItem } from "./response-items.ts";
import type { ResponseRounds, RoundCall } from "./response-rounds.ts";

type EventData = Record<string, unknown>;

/** How a round's stream ended: its terminal event, and the events behind it. */
interface RoundEnd {
  name: string;
  record: ResponseRecord;
  tail: { name: string; data: string }[];
}

/** The events of a response whose tools the gateway runs, round by round, as one stream. */
export class ResponseEvents extends RoundStream {
  private readonly rounds: ResponseRounds;
  private sequence = 0;
  private isOpened = false;

  constructor({ rounds, ...streams }: StreamedRounds & { rounds: ResponseRounds }) {
    super(streams);
    this.rounds = rounds;
  }

  protected async *run(): AsyncGenerator<string, void> {
    for (;;) {
      const end = yield* this.relay();
      if (end === undefined || this.isCancelled) return;
      const ended: string[] = [];
      const after = await this.rounds.take(end.record, (call) => ended.push(this.endOf(call)));
      if (ended.length > 0) yield ended.join("");
      if (this.isCancelled) return;
      if (after !== "ask-again") {
        yield this.terminal(end, after === "at-bound" ? boundEnd : {});
        return;
      }
      const failure = await this.advance();
      if (failure !== undefined) {
        yield this.terminal({ ...end, name: "response.failed" }, failedEnd(failure));
        return;
      }
    }
  }

  /** Opens the next round. Returns the error where it cannot be had. */
  private async advance(): Promise<GatewayError | undefined> {
    try {
      await this.openNext();
      return undefined;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  }

  private async *relay(): AsyncGenerator<string, RoundEnd | undefined> {
    let end: RoundEnd | undefined;
    for (;;) {
      const frames = await this.current.next();
      if (frames === undefined) return end;
      const events = eventsIn(frames);
      if (events.length === 0) {
        yield frames;
        continue;
      }
      let text = "";
      for (const event of events) {
        if (end !== undefined) end.tail.push(event);
        else if (isTerminal(event.name)) {
          const record = endIn([event])?.record;
          if (record !== undefined) end = { name: event.name, record, tail: [] };
        } else text += this.shown(event);
      }
      if (text !== "") yield text;
    }
  }

  /** Returns the frames of an event of a round as the client sees them. */
  private shown({ name, data }: { name: string; data: string }): string {
    const event = JSON.parse(data) as EventData;
    if (event["response"] !== undefined) return this.stateEvent(name, event);
    const opening = this.opening();
    const { output_index: index } = event;
    if (typeof index !== "number") return opening + this.frame(name, event);
    event["output_index"] = index + this.rounds.roundBase;
    return opening + this.itemEvent(name, { event, index });
  }

  /** Events that show the response are sent in the first round alone. */
  private stateEvent(name: string, event: EventData): string {
    if (!this.rounds.isFirst) return "";
    const record = this.rounds.shown(event["response"] as ResponseRecord);
    const state = this.frame(name, { ...event, response: { ...record, output: [] } });
    return name === "response.in_progress" ? state + this.opening() : state;
  }

  /** Returns the events of the items before the first round: lists of tools, and approved calls. */
  private opening(): string {
    if (this.isOpened) return "";
    this.isOpened = true;
    return this.rounds.output
      .slice(0, this.rounds.roundBase)
      .map((item, index) => this.wholeItem(item, index))
      .join("");
  }

  private wholeItem(item: ResponseItem, index: number): string {
    const isList = item["type"] === "mcp_list_tools";
    const place = { item_id: item["id"], output_index: index };
    const kind = isList ? "mcp_list_tools" : "mcp_call";
    const hasFailed = item["error"] !== null;
    const started = isList
      ? { ...item, tools: [], error: null }
      : { ...item, status: "in_progress", output: null, error: null };
    return (
      this.frame("response.output_item.added", { output_index: index, item: started }) +
      this.frame(`response.${kind}.in_progress`, place) +
      (isList
        ? ""
        : this.frame("response.mcp_call_arguments.done", {
            ...place,
            arguments: item["arguments"],
          })) +
      this.frame(`response.${kind}.${hasFailed ? "failed" : "completed"}`, place) +
      this.frame("response.output_item.done", { output_index: index, item })
    );
  }

  private itemEvent(name: string, { event, index }: { event: EventData; index: number }): string {
    const item = event["item"] as ResponseItem | undefined;
    const call = item === undefined ? this.callAt(index) : this.rounds.noteCall(item, index);
    if (call === undefined) return this.citing(name, event);
    this.calls.set(index, call);
    if (call.tool.needsApproval) return "";
    const place = { item_id: call.id, output_index: call.outputIndex };
    if (call.tool.search !== undefined) return this.searchEvent(name, { event, call });
    switch (name) {
      case "response.output_item.added":
        return (
          this.frame(name, { ...event, item: startedCallItem(call.tool, call.id) }) +
          this.frame("response.mcp_call.in_progress", place)
        );
      case "response.function_call_arguments.delta":
        return this.frame("response.mcp_call_arguments.delta", { ...place, delta: event["delta"] });
      case "response.function_call_arguments.done":
        return this.frame("response.mcp_call_arguments.done", {
          ...place,
          arguments: event["arguments"],
        });
      default:
        return "";
    }
  }

  /** A search has no events of its arguments, which are shown once it has ended. */
  private searchEvent(
    name: string,
    { event, call }: { event: EventData; call: RoundCall },
  ): string {
    if (name !== "response.output_item.added") return "";
    const place = { item_id: call.id, output_index: call.outputIndex };
    return (
      this.frame(name, { ...event, item: startedCallItem(call.tool, call.id) }) +
      this.frame("response.web_search_call.in_progress", place) +
      this.frame("response.web_search_call.searching", place)
    );
  }

  /** Adds the pages that a text cites to the events that end it. */
  private citing(name: string, event: EventData): string {
    const { pages } = this.rounds;
    if (pages.length === 0) return this.frame(name, event);
    const { part, item, text, item_id: id, output_index: index, content_index: place } = event;
    if (name === "response.output_text.done") {
      const annotations = citationsOf(String(text), pages).map((annotation, annotationIndex) =>
        this.frame("response.output_text.annotation.added", {
          item_id: id,
          output_index: index,
          content_index: place,
          annotation_index: annotationIndex,
          annotation,
        }),
      );
      return annotations.join("") + this.frame(name, event);
    }
    if (name === "response.content_part.done")
      return this.frame(name, { ...event, part: citingPart(part as ResponseItem, pages) });
    if (name === "response.output_item.done")
      return this.frame(name, { ...event, item: citingItem(item as ResponseItem, pages) });
    return this.frame(name, event);
  }

  /** The calls of the present round by their index in it. */
  private readonly calls = new Map<number, RoundCall>();

  private callAt(index: number): RoundCall | undefined {
    const call = this.calls.get(index);
    return call?.outputIndex === index + this.rounds.roundBase ? call : undefined;
  }

  private endOf({ id, tool, outputIndex, item }: RoundCall): string {
    const hasFailed = tool.search === undefined && item?.["error"] !== null;
    const kind = tool.search === undefined ? "mcp_call" : "web_search_call";
    return (
      this.frame(`response.${kind}.${hasFailed ? "failed" : "completed"}`, {
        item_id: id,
        output_index: outputIndex,
      }) + this.frame("response.output_item.done", { output_index: outputIndex, item })
    );
  }

  private terminal({ name, record, tail }: RoundEnd, changes: ResponseRecord): string {
    const approvals = [...this.calls.values()]
      .filter(({ tool, outputIndex }) => tool.needsApproval && outputIndex >= this.rounds.roundBase)
      .map(({ item, outputIndex }) => this.approval(item, outputIndex))
      .join("");
    const status = changes["status"];
    const shownName = typeof status === "string" ? `response.${status}` : name;
    return (
      approvals +
      this.frame(shownName, { response: this.rounds.shown(record, changes) }) +
      tail
        .map(({ name: tailName, data }) =>
          this.frame(tailName, this.rounds.named(JSON.parse(data) as EventData)),
        )
        .join("")
    );
  }

  private approval(item: ResponseItem | undefined, index: number): string {
    return (
      this.frame("response.output_item.added", { output_index: index, item }) +
      this.frame("response.output_item.done", { output_index: index, item })
    );
  }

  private frame(name: string, { type: _, sequence_number: __, ...event }: EventData): string {
    const data = { type: name, sequence_number: this.sequence, ...event };
    this.sequence += 1;
    return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

/** The end of a response whose model still called tools in its last round. */
export const boundEnd: ResponseRecord = {
  status: "incomplete",
  incomplete_details: { reason: "max_tool_calls" },
};

/** Returns the end of a response of which a later round failed. */
export const failedEnd = ({ code, message }: GatewayError): ResponseRecord => ({
  status: "failed",
  error: { code, message },
});
