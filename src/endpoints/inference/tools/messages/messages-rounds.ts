import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import { brand } from "../../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../../platform/kernel/frame-source.ts";
import { eventsIn } from "../../../../inference/responses/stored-response.ts";
import { resultText, type DialogueRounds, type MadeCall, type Wire } from "../dialogue-rounds.ts";
import { blocksOf } from "./messages-face.ts";

/** The stop reason of an answer whose model still called tools in its last round. */
const boundReason = "pause_turn";

/** Returns a block of a call as clients see calls of the gateway's tools (Anthropic, "MCP connector"). */
const usedBlock = (rounds: DialogueRounds, { id, name, input }: Wire): Wire => {
  const tool = rounds.options.tools.find(name);
  return {
    type: "mcp_tool_use",
    id,
    name: tool?.definition.name ?? name,
    server_name: tool?.label ?? "",
    input,
  };
};

const resultBlock = ({ id, ran }: MadeCall): Wire => ({
  type: "mcp_tool_result",
  tool_use_id: id,
  is_error: ran.error !== null,
  content: [{ type: "text", text: resultText(ran) }],
});

/** One answer in Messages whose model calls the gateway's tools between its rounds. */
export class MessagesTurn {
  private readonly rounds: DialogueRounds;
  private readonly content: Wire[] = [];

  constructor(rounds: DialogueRounds) {
    this.rounds = rounds;
  }

  /** Returns a block as the client sees it. */
  shown(block: Wire): Wire {
    const isOwn =
      block["type"] === "tool_use" && this.rounds.runnable(String(block["name"])) !== undefined;
    return isOwn ? usedBlock(this.rounds, block) : block;
  }

  /** Takes a round's content. Returns the blocks of its results, and whether the answer has ended. */
  async take(content: readonly Wire[]): Promise<{ results: Wire[]; after: string }> {
    const { after, made } = await this.rounds.take({ role: "assistant", content });
    const results = made.map(resultBlock);
    this.content.push(...content.map((block) => this.shown(block)), ...results);
    return { results, after };
  }

  /** Takes a whole round; undefined where the model is to be asked again. */
  async takeWhole(body: Wire): Promise<Wire | undefined> {
    this.rounds.usage.addRound(body["usage"]);
    const { after } = await this.take(blocksOf(body));
    if (after === "ask-again") return undefined;
    return {
      ...body,
      content: this.content,
      ...(after === "at-bound" && { stop_reason: boundReason }),
      usage: this.rounds.usage.total ?? body["usage"],
    };
  }
}

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
export class MessagesStream implements FrameSource {
  private readonly turn: MessagesTurn;
  private readonly rounds: DialogueRounds;
  private readonly ask: () => Promise<FrameSource>;
  private readonly onCancel: () => void;
  private readonly frames: AsyncGenerator<string, void>;
  private current: FrameSource;
  private isCancelled = false;
  /** The number of blocks before the present round. */
  private base = 0;
  private blocks: StreamedBlock[] = [];

  constructor(options: {
    turn: MessagesTurn;
    rounds: DialogueRounds;
    first: FrameSource;
    ask: () => Promise<FrameSource>;
    onCancel: () => void;
  }) {
    this.turn = options.turn;
    this.rounds = options.rounds;
    this.current = options.first;
    this.ask = options.ask;
    this.onCancel = options.onCancel;
    this.frames = this.run();
  }

  async next(): Promise<string | undefined> {
    const { value } = await this.frames.next();
    return value ?? undefined;
  }

  cancel(): void {
    this.isCancelled = true;
    this.current.cancel();
    this.onCancel();
  }

  private async *run(): AsyncGenerator<string, void> {
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
        this.current = await this.ask();
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
    return frameOf(placed);
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
    const told = Object(delta["delta"]) as Wire;
    const metadata = stop?.[brand.metadataKey];
    return (
      frameOf({
        ...delta,
        delta: atBound ? { ...told, stop_reason: boundReason } : told,
        usage: this.rounds.usage.total ?? delta["usage"],
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
