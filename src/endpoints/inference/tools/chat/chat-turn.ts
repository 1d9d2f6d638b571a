import { brand } from "../../../../platform/kernel/brand.ts";
import { usdFromNano } from "../../../../platform/kernel/money.ts";
import { callsOfMessage } from "./chat-face.ts";
import type { FoundPage } from "../../../../mcp/search/web-search.ts";
import { pagesOf, type DialogueRounds, type MadeCall, type Wire } from "../dialogue-rounds.ts";
import { citationsIn } from "../web-search.ts";
import type { HiddenTurns } from "./hidden-turns.ts";

/** What separates the texts of two rounds in one message. */
export const roundGap = "\n\n";

/** Returns the pages that a text cites, as the chat dialect has them. */
const annotationsOf = (content: unknown, pages: readonly FoundPage[]): Wire[] =>
  typeof content !== "string"
    ? []
    : citationsIn(content, pages).map(({ page, startIndex, endIndex }) => ({
        type: "url_citation",
        url_citation: {
          url: page.url,
          title: page.title,
          content: page.text,
          start_index: startIndex,
          end_index: endIndex,
        },
      }));

/** Returns the calls that the gateway made, as the metadata shows them. */
const shownCalls = (made: readonly MadeCall[]) =>
  made.map(({ tool, ran }) => ({
    server_label: tool.search === undefined ? tool.label : null,
    name: tool.definition.name,
    status: ran.error === null ? "completed" : "failed",
    cost: usdFromNano(ran.chargedNano),
  }));

/** One answer in the chat dialect whose model calls the gateway's tools between its rounds. */
export class ChatTurn {
  private readonly hidden: Wire[] = [];
  private readonly texts: string[] = [];

  constructor(
    private readonly rounds: DialogueRounds,
    private readonly turns: HiddenTurns,
  ) {}

  /** Returns whether a call is left to the client. */
  isClients(name: string): boolean {
    return this.rounds.runnable(name) === undefined;
  }

  /**
   * Takes a round's message. Returns the message that ends the answer, with its finish reason, or
   * undefined where the model is to be asked again.
   */
  async take(
    message: Wire,
    finish: unknown,
  ): Promise<{ message: Wire; finish: unknown } | undefined> {
    if (typeof message["content"] === "string" && message["content"] !== "")
      this.texts.push(message["content"]);
    const { after, made } = await this.rounds.take(message);
    const ids = new Set(made.map(({ id }) => id));
    const all = Array.isArray(message["tool_calls"]) ? (message["tool_calls"] as Wire[]) : [];
    const ran = all.filter(({ id }) => ids.has(String(id)));
    const left = all.filter(({ id }) => !ids.has(String(id)));
    if (ran.length > 0)
      this.hidden.push(
        { ...message, content: left.length > 0 ? null : message["content"], tool_calls: ran },
        ...made.map(({ id, ran: { text } }) => ({
          role: "tool",
          tool_call_id: id,
          content: text,
        })),
      );
    if (after === "ask-again") return undefined;
    this.turns.remember(this.rounds.options.call.caller.workspace.id, {
      callIds: callsOfMessage({ tool_calls: left }).map(({ id }) => id),
      messages: this.hidden,
    });
    const { tool_calls: _, ...rest } = message;
    const content = this.texts.length === 0 ? message["content"] : this.texts.join(roundGap);
    const cited = annotationsOf(content, pagesOf(this.rounds.made));
    const shown = {
      ...rest,
      content,
      ...(left.length > 0 && { tool_calls: left }),
      ...(cited.length > 0 && { annotations: cited }),
    };
    return { message: shown, finish: after === "at-bound" ? "length" : finish };
  }

  /** Returns the metadata of an answer with the calls that the gateway made. */
  metadata(reported: unknown): Wire {
    return {
      ...Object(reported),
      requestId: this.rounds.options.call.traceId,
      tool_calls: shownCalls(this.rounds.made),
    };
  }

  /** Returns a whole answer of a round as the client sees the whole. */
  async takeWhole(body: Wire): Promise<Wire | undefined> {
    const [choice, ...others] = body["choices"] as Wire[];
    this.rounds.usage.addRound(body["usage"]);
    const ended = await this.take(choice?.["message"] as Wire, choice?.["finish_reason"]);
    if (ended === undefined) return undefined;
    return this.whole(body, [
      { ...choice, message: ended.message, finish_reason: ended.finish },
      ...others,
    ]);
  }

  /** Returns the answer with what all rounds used. */
  whole(body: Wire, choices: unknown): Wire {
    return {
      ...body,
      choices,
      usage: this.rounds.usage.total ?? body["usage"],
      [brand.metadataKey]: this.metadata(body[brand.metadataKey]),
    };
  }
}
