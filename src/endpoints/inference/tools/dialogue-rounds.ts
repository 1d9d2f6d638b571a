import type { ClientDialect } from "../../../inference/dialects/dialect.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import { asksForNone } from "../../../inference/pipeline/settlement/keep-content.ts";
import type { Dependencies } from "../../dependencies.ts";
import type { GatewayTool, GatewayTools } from "./gateway-tools.ts";
import { roundCall } from "./round-call.ts";
import { RoundUsage } from "./round-usage.ts";
import type { FoundPage } from "../../../mcp/search/web-search.ts";
import { runTool, unmadeRun, type RanTool } from "./run-tool.ts";
import { isSearchTool } from "./asked-tools.ts";
import { searchEdits } from "./web-search.ts";

/** A message or a block of one, as its dialect has it. */
export type Wire = Readonly<Record<string, unknown>>;

/** A call of a tool that a model made. */
export interface WireCall {
  id: string;
  name: string;
  argumentsText: string;
}

/** A call of the gateway's tools that was made. */
export interface MadeCall extends WireCall {
  tool: GatewayTool;
  ran: RanTool;
}

/** What a dialect of messages says of tools. */
export interface ToolFace {
  dialect: ClientDialect;
  /** Returns a tool as a function of the dialect. */
  functionOf(tool: GatewayTool): Wire;
  /** Returns the messages as models know them, where the client's hold calls of other kinds. */
  modelMessages(messages: readonly Wire[], tools: GatewayTools): Wire[];
  /** Returns the calls of an answer. */
  callsOf(answer: Wire): WireCall[];
  /** Returns the calls of the last answer in a conversation that no message answers. */
  unansweredCalls(messages: readonly Wire[]): WireCall[];
  /** Returns the messages that tell a model an answer and the results of its calls. */
  resultMessages(calls: readonly MadeCall[], seesPictures: boolean): Wire[];
  /** Returns a choice of a tool for a later round; undefined lets the model choose. */
  noTools: unknown;
}

/** What is to be done after a round. */
export type AfterRound = "ask-again" | "ended" | "at-bound";

/** The options of rounds. */
interface DialogueOptions {
  call: ChatCall;
  tools: GatewayTools;
  deps: Pick<Dependencies, "inference" | "toolCalls" | "clock">;
  maxRounds: number;
  signal: AbortSignal;
  seesPictures: boolean;
}

const typeOf = (tool: unknown): unknown => (Object(tool) as { type?: unknown }).type;

/** The most tool calls of one round that run at once. */
const parallelMax = 8;

/**
 * The rounds of one answer in chat or Messages. A call that needs approval is handed to the client
 * as a call of its own; it approves by sending the conversation again, with the call unanswered and
 * `require_approval: never`.
 */
export class DialogueRounds {
  readonly usage = new RoundUsage();
  /** Every call of the request, in order. */
  readonly made: MadeCall[] = [];
  private messages: Wire[];
  private roundsAsked = 0;
  private readonly callsMax: number;

  constructor(
    private readonly face: ToolFace,
    readonly options: DialogueOptions,
  ) {
    const { messages, max_tool_calls: most } = options.call.body;
    this.messages = face.modelMessages(messages as Wire[], options.tools);
    this.callsMax = typeof most === "number" ? most : Number.POSITIVE_INFINITY;
  }

  /** Whether the present round is the first. */
  get isFirst(): boolean {
    return this.roundsAsked === 1;
  }

  /** Returns the gateway's tool that a call means, if it may run without a person. */
  runnable(name: string): GatewayTool | undefined {
    const tool = this.options.tools.find(name);
    return tool?.needsApproval ? undefined : tool;
  }

  /** Makes the calls of the last answer that the client has approved. */
  async begin(): Promise<void> {
    const calls = this.face.unansweredCalls(this.messages);
    const made = await this.runAll(calls);
    if (made.length > 0)
      this.messages.push(...this.face.resultMessages(made, this.options.seesPictures));
  }

  /** Returns the call of the next round. */
  nextCall(): ChatCall {
    const { call, tools, maxRounds } = this.options;
    this.roundsAsked += 1;
    const isLast =
      this.roundsAsked > 1 && (this.roundsAsked >= maxRounds || this.made.length >= this.callsMax);
    const own = Array.isArray(call.body["tools"]) ? call.body["tools"] : [];
    const functions = [
      ...own.filter((tool: unknown) => !this.isGateways(tool)),
      ...tools.all.map((tool) => this.face.functionOf(tool)),
    ];
    const choice = this.isFirst ? call.body["tool_choice"] : undefined;
    const edits = new Map<string, unknown>([
      ["messages", this.messages],
      ["tools", functions.length === 0 ? undefined : functions],
      ["tool_choice", functions.length === 0 ? undefined : isLast ? this.face.noTools : choice],
      ["max_tool_calls", undefined],
      ...(this.searches ? searchEdits(call.body) : []),
    ]);
    return roundCall(call, {
      dialect: this.face.dialect,
      edits,
      isFirst: this.isFirst,
      nowMs: this.options.deps.clock.nowMs(),
    });
  }

  /** Takes the whole answer of a round, and runs the tools that it calls. */
  async take(answer: Wire): Promise<{ after: AfterRound; made: MadeCall[] }> {
    const calls = this.face.callsOf(answer);
    const made = await this.runAll(calls);
    if (made.length === 0 || made.length < calls.length) return { after: "ended", made };
    if (this.roundsAsked >= this.options.maxRounds) return { after: "at-bound", made };
    this.messages.push(answer, ...this.face.resultMessages(made, this.options.seesPictures));
    return { after: "ask-again", made };
  }

  private async runAll(calls: readonly WireCall[]): Promise<MadeCall[]> {
    const runs = calls.flatMap((call) => {
      const tool = this.runnable(call.name);
      return tool === undefined ? [] : [{ ...call, tool }];
    });
    const made: MadeCall[] = [];
    for (let start = 0; start < runs.length; start += parallelMax)
      made.push(
        ...(await Promise.all(
          runs
            .slice(start, start + parallelMax)
            .map(async (run) => ({ ...run, ran: await this.run(run) })),
        )),
      );
    this.made.push(...made);
    return made;
  }

  private callsBegun = 0;
  private searchesBegun = 0;

  /** Whether the gateway searches the web for the model. */
  private get searches(): boolean {
    return this.options.tools.searches;
  }

  private isGateways(tool: unknown): boolean {
    return typeOf(tool) === "mcp" || (this.searches && isSearchTool(tool));
  }

  private async run({ tool, argumentsText }: WireCall & { tool: GatewayTool }): Promise<RanTool> {
    const { deps, call, signal } = this.options;
    this.callsBegun += 1;
    if (this.callsBegun > this.callsMax) {
      return unmadeRun(
        `The request allows ${this.callsMax} tool calls (max_tool_calls), and they were made.`,
      );
    }
    if (tool.search !== undefined && (this.searchesBegun += 1) > tool.search.usesMax)
      return unmadeRun(`The request allows ${tool.search.usesMax} searches (max_uses).`);
    const { caller, customer, generationId: calledBy } = call;
    const keepsNothing = asksForNone(call.body);
    const run = { tool, argumentsText, caller, customer, signal, calledBy, keepsNothing };
    const ran = await runTool(deps.toolCalls, run);
    this.usage.addTool(ran.chargedNano);
    return ran;
  }
}

/** The pages that the searches of these calls found. */
export const pagesOf = (made: readonly MadeCall[]): FoundPage[] =>
  made.flatMap(({ ran }) => ran.pages ?? []);

/** Returns what a model is sent of a result. */
export const resultText = ({ text, error }: RanTool): string =>
  error === null ? text : `The tool failed: ${text}`;
