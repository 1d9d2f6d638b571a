import { RoundStream, type StreamedRounds } from "../round-stream.ts";
import { anthropicMessages } from "../../../../inference/dialects/anthropic-messages/index.ts";
import { brand } from "../../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { eventsIn } from "../../../../inference/responses/stored-response.ts";
import type { FoundPage } from "../../../../mcp/search/web-search.ts";
import { citationsIn } from "../web-search.ts";
import {
  pagesOf,
  resultText,
  type DialogueRounds,
  type MadeCall,
  type Wire,
} from "../dialogue-rounds.ts";
import { blocksOf, sealedText } from "./messages-face.ts";

/** The stop reason of an answer whose model still called tools in its last round. */
const boundReason = "pause_turn";

/** Returns a block of a call as clients see calls of the gateway's tools (Anthropic, "MCP connector"). */
const usedBlock = (rounds: DialogueRounds, { id, name, input }: Wire): Wire => {
  const tool = rounds.options.tools.find(name);
  if (tool?.search !== undefined) return { type: "server_tool_use", id, name, input };
  return {
    type: "mcp_tool_use",
    id,
    name: tool?.definition.name ?? name,
    server_name: tool?.label ?? "",
    input,
  };
};

const resultBlock = ({ id, tool, ran }: MadeCall): Wire =>
  tool.search === undefined ? mcpResult({ id, ran }) : searchResult({ id, ran });

/** Returns the result of a search (Anthropic, "Web search tool"); the text of a page is opaque there. */
const searchResult = ({ id, ran }: Pick<MadeCall, "id" | "ran">): Wire => ({
  type: "web_search_tool_result",
  tool_use_id: id,
  content:
    ran.pages === undefined
      ? { type: "web_search_tool_result_error", error_code: "unavailable" }
      : ran.pages.map(({ url, title, text, age }) => ({
          type: "web_search_result",
          url,
          title,
          encrypted_content: sealedText(text),
          page_age: age ?? null,
        })),
});

/** Returns the citations of a text (Anthropic, "Web search tool"). */
const citationsOf = (text: string, pages: readonly FoundPage[]): Wire[] =>
  citationsIn(text, pages).map(({ page }, index) => ({
    type: "web_search_result_location",
    url: page.url,
    title: page.title,
    encrypted_index: sealedText(String(index)),
    cited_text: page.text.slice(0, 150),
  }));

/** Returns a text block with its citations; every other block as it is. */
function citing(block: Wire, pages: readonly FoundPage[]): Wire {
  if (block["type"] !== "text" || pages.length === 0) return block;
  const cited = citationsOf(String(block["text"]), pages);
  return cited.length === 0 ? block : { ...block, citations: cited };
}

const mcpResult = ({ id, ran }: Pick<MadeCall, "id" | "ran">): Wire => ({
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
    const { pages } = this;
    const { after, made } = await this.rounds.take({ role: "assistant", content });
    const results = made.map(resultBlock);
    const blocks = content.map((block) => citing(this.shown(block), pages));
    this.content.push(...blocks, ...results);
    return { results, after };
  }

  /** The pages that searches found in earlier rounds. */
  get pages(): FoundPage[] {
    return pagesOf(this.rounds.made);
  }

  /** Returns the usage of all rounds, with the number of searches. */
  usage(told: unknown): unknown {
    const total = this.rounds.usage.total ?? told;
    const searches = this.rounds.made.filter(({ ran }) => ran.pages !== undefined).length;
    return searches === 0
      ? total
      : { ...Object(total), server_tool_use: { web_search_requests: searches } };
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
      usage: this.usage(body["usage"]),
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
    const told = Object(delta["delta"]) as Wire;
    const metadata = stop?.[brand.metadataKey];
    return (
      frameOf({
        ...delta,
        delta: atBound ? { ...told, stop_reason: boundReason } : told,
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
