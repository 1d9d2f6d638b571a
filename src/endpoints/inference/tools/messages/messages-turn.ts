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
export const boundReason = "pause_turn";

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
export const citationsOf = (text: string, pages: readonly FoundPage[]): Wire[] =>
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
  private readonly content: Wire[] = [];

  constructor(private readonly rounds: DialogueRounds) {}

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
  usage(reported: unknown): unknown {
    const total = this.rounds.usage.total ?? reported;
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
