import { RoundStream, type StreamedRounds } from "../round-stream.ts";
import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import { brand } from "../../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { eventsIn } from "../../../../inference/responses/stored-response.ts";
import type { DialogueRounds, Wire } from "../dialogue-rounds.ts";
import { boundReason, citationsOf, type MessagesTurn } from "./messages-turn.ts";

/** A block that a stream has sent in parts. */
class StreamedBlock {
  private readonly block: Record<string, unknown>;
  private json = "";

  constructor(start: Wire) {
    this.block = { ...start };
  }

  add(delta: Wire): void {
    const { type, partial_json: json, ...parts } = delta;
    if (type === "input_json_delta") this.json += String(json);
    else if (type === "citations_delta")
      this.block["citations"] = [
        ...((this.block["citations"] as unknown[] | undefined) ?? []),
        parts["citation"],
      ];
    else
      for (const [name, value] of Object.entries(parts))
        this.block[name] = `${String(this.block[name] ?? "")}${String(value)}`;
  }

  get whole(): Wire {
    if (this.json === "") return this.block;
    try {
      return { ...this.block, input: JSON.parse(this.json) as unknown };
    } catch {
      return this.block;
    }
  }
}

const frameOf = (event: Wire): string =>
  `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;

/** The events of such an answer, round by round, as one stream. */
export class MessagesStream extends RoundStream {
  private readonly turn: MessagesTurn;
  private readonly rounds: DialogueRounds;
  /** The number of blocks before the present round. */
  private base = 0;
  private blocks: StreamedBlock[] = [];

  constructor({
    turn,
    rounds,
    ...streams
  }: StreamedRounds & { turn: MessagesTurn; rounds: DialogueRounds }) {
    super(streams);
    this.turn = turn;
    this.rounds = rounds;
  }

  protected async *run(): AsyncGenerator<string, void> {
    for (;;) {
      this.blocks = [];
      const end = yield* this.relay();
      if (this.isCancelled || end.delta === undefined) return;
      this.rounds.usage.addRound(end.delta["usage"]);
      const { results, after } = await this.turn.take(this.blocks.map(({ whole }) => whole));
      if (this.isCancelled) return;
      this.base += this.blocks.length;
      if (results.length > 0) yield this.resultFrames(results);
      if (after !== "ask-again") {
        yield this.ending(end, after === "at-bound");
        return;
      }
      try {
        await this.openNext();
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const { traceId } = this.rounds.options.call;
        yield anthropicMessages.encodeStreamError(error, { traceId }).join("");
        return;
      }
    }
  }

  private async *relay(): AsyncGenerator<string, { delta?: Wire; stop?: Wire }> {
    const end: { delta?: Wire; stop?: Wire } = {};
    for (;;) {
      const frames = await this.current.next();
      if (frames === undefined) return end;
      const events = eventsIn(frames);
      if (events.length === 0) yield frames;
      let text = "";
      for (const { name, data } of events) {
        const event = JSON.parse(data) as Wire;
        if (name === "message_delta") end.delta = event;
        else if (name === "message_stop") end.stop = event;
        else if (name !== "message_start" || this.rounds.isFirst) text += this.shown(event);
      }
      if (text !== "") yield text;
    }
  }

  private shown(event: Wire): string {
    const { index } = event;
    if (typeof index !== "number") return frameOf(event);
    const placed = { ...event, index: index + this.base };
    const start = event["content_block"] as Wire | undefined;
    if (start !== undefined) {
      this.blocks[index] = new StreamedBlock(start);
      return frameOf({ ...placed, content_block: this.turn.shown(start) });
    }
    const delta = event["delta"] as Wire | undefined;
    if (delta !== undefined) this.blocks[index]?.add(delta);
    return event["type"] === "content_block_stop"
      ? this.citations(index) + frameOf(placed)
      : frameOf(placed);
  }

  private citations(index: number): string {
    const { type, text } = this.blocks[index]?.whole ?? {};
    if (type !== "text") return "";
    return citationsOf(String(text), this.turn.pages)
      .map((citation) =>
        frameOf({
          type: "content_block_delta",
          index: index + this.base,
          delta: { type: "citations_delta", citation },
        }),
      )
      .join("");
  }

  private resultFrames(results: readonly Wire[]): string {
    const frames = results.map((block, place) => {
      const index = this.base + place;
      return (
        frameOf({ type: "content_block_start", index, content_block: block }) +
        frameOf({ type: "content_block_stop", index })
      );
    });
    this.base += results.length;
    return frames.join("");
  }

  private ending({ delta = {}, stop }: { delta?: Wire; stop?: Wire }, atBound: boolean): string {
    const fields = Object(delta["delta"]) as Wire;
    const metadata = stop?.[brand.metadataKey];
    return (
      frameOf({
        ...delta,
        delta: atBound ? { ...fields, stop_reason: boundReason } : fields,
        usage: this.turn.usage(delta["usage"]),
      }) +
      frameOf({
        ...(stop ?? { type: "message_stop" }),
        ...(metadata !== undefined && {
          [brand.metadataKey]: {
            ...Object(metadata),
            requestId: this.rounds.options.call.traceId,
          },
        }),
      })
    );
  }
}
