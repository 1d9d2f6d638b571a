import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { openaiResponses } from "../../../../inference/dialects/openai-responses/index.ts";
import type { ChatCall } from "../../../../inference/pipeline/inference-call.ts";
import { asksForNone } from "../../../../inference/pipeline/settlement/keep-content.ts";
import {
  outputItems,
  type ResponseItem,
  type ResponseRecord,
} from "../../../../inference/responses/stored-response.ts";
import type { FoundPage } from "../../../../mcp/search/web-search.ts";
import { brand } from "../../../../platform/kernel/brand.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { type GatewayTool, type GatewayTools, onlyReads } from "../gateway-tools.ts";
import {
  approvalItem,
  approvedPair,
  citingItem,
  endedCallItem,
  itemId,
  listItem,
  modelConversation,
  resultItem,
  type ModelCall,
} from "./response-items.ts";
import { roundCall } from "../round-call.ts";
import { isMcpTool, isSearchTool } from "../asked-tools.ts";
import { searchEdits } from "../web-search.ts";
import { RoundUsage } from "../round-usage.ts";
import { runTool, unmadeRun, type RanTool } from "../run-tool.ts";

/** A call of a round: its place in the client's output, and the item that the client sees. */
export interface RoundCall extends ModelCall {
  outputIndex: number;
  id: string;
  /** The item once it is known: of the ended call, or of the request for approval. */
  item?: ResponseItem;
}

/** What is to be done after a round. */
export type AfterRound = "ask-again" | "ended" | "at-bound";

/** The most tool calls of one round that run at once. */
const parallelMax = 8;

/** The options of a request whose tools the gateway runs. */
interface ResponseRoundsOptions {
  call: ChatCall;
  /** The whole conversation, oldest first. */
  conversation: readonly ResponseItem[];
  tools: GatewayTools;
  deps: Pick<Dependencies, "inference" | "toolCalls" | "clock">;
  maxRounds: number;
  signal: AbortSignal;
  /** Whether the model can see pictures. */
  seesPictures: boolean;
  /** Called before each tool that does more than read, which waits for it. */
  beforeActing: (() => Promise<void>) | undefined;
}

/** Returns a tool as a function that every model can call. */
const functionTool = ({ name, definition }: GatewayTool) => ({
  type: "function",
  name,
  description: definition.description ?? definition.title ?? "",
  parameters: definition.inputSchema,
  strict: false,
});

/**
 * The rounds of one response: the model is asked, the tools that it calls are run, and it is asked
 * again with their results, until it calls none, a person has to approve one, or the client has to
 * run its own. Each round and each call is held, charged and recorded by itself.
 */
export class ResponseRounds {
  /** The items that the client is shown. */
  readonly output: ResponseItem[] = [];
  readonly usage = new RoundUsage();
  /** The pages that searches found so far. */
  readonly pages: FoundPage[] = [];
  /** The calls of the present round, by their `call_id`. */
  private roundCalls = new Map<string, RoundCall>();
  private items: ResponseItem[] = [];
  private roundsAsked = 0;
  private callsMade = 0;
  private readonly callsMax: number;
  private createdAt: unknown;
  /** Where the items of the present round begin in the output. */
  private base = 0;

  constructor(private readonly options: ResponseRoundsOptions) {
    const { max_tool_calls: most } = options.call.body;
    this.callsMax = typeof most === "number" ? most : Number.POSITIVE_INFINITY;
  }

  private get nowMs(): number {
    return this.options.deps.clock.nowMs();
  }

  /** Returns the number of output items before the present round. */
  get roundBase(): number {
    return this.base;
  }

  /** Whether the present round is the first. */
  get isFirst(): boolean {
    return this.roundsAsked === 1;
  }

  /**
   * Lists the tools and makes the calls that a person has approved, before the model is asked for
   * the first time.
   */
  async begin(): Promise<void> {
    const { conversation, tools } = this.options;
    const { items, approved, listedLabels } = modelConversation(conversation, tools);
    this.items = items;
    for (const server of tools.servers)
      if (!listedLabels.has(server.label))
        this.output.push(listItem(server, itemId("mcpl", this.nowMs)));
    for (const call of approved) {
      const tool = tools.ofServer(call.label, call.name);
      const ran: RanTool =
        tool === undefined
          ? unavailable(call.name)
          : await this.run({ tool, argumentsText: call.argumentsText });
      this.items.push(...approvedPair(tools, { call, ran }));
      if (tool === undefined) continue;
      const ended = { tool, argumentsText: call.argumentsText };
      const id = itemId("mcp", this.nowMs);
      this.output.push(endedCallItem(ended, { id, ran, approvalId: call.approvalId }));
    }
  }

  /** Returns the call of the next round. */
  nextCall(): ChatCall {
    const { call, maxRounds, tools } = this.options;
    this.roundsAsked += 1;
    this.base = this.output.length;
    this.roundCalls = new Map();
    const isLast = this.roundsAsked >= maxRounds || this.callsMade >= this.callsMax;
    const own = Array.isArray(call.body["tools"]) ? call.body["tools"] : [];
    const functions = [
      ...own.filter((tool: unknown) => !isMcpTool(tool) && !(tools.searches && isSearchTool(tool))),
      ...tools.all.map(functionTool),
    ];
    const choice = this.choiceOf(isLast && this.roundsAsked > 1);
    const edits = new Map<string, unknown>([
      ["input", this.items],
      ["tools", functions.length === 0 ? undefined : functions],
      ["tool_choice", functions.length === 0 ? undefined : choice],
      ["max_tool_calls", undefined],
      ["previous_response_id", undefined],
      ...(tools.searches ? searchEdits(call.body) : []),
    ]);
    return roundCall(call, {
      dialect: openaiResponses,
      edits,
      isFirst: this.isFirst,
      nowMs: this.nowMs,
    });
  }

  /** Returns the tool of the present round that a function call means, and where it is shown. */
  noteCall(item: ResponseItem, index: number): RoundCall | undefined {
    const tool =
      item["type"] === "function_call" ? this.options.tools.find(item["name"]) : undefined;
    if (tool === undefined) return undefined;
    const callId = String(item["call_id"]);
    const known = this.roundCalls.get(callId);
    const argumentsText = String(item["arguments"] ?? "");
    if (known !== undefined) {
      known.argumentsText = argumentsText;
      return known;
    }
    const prefix = tool.search !== undefined ? "ws" : tool.needsApproval ? "mcpr" : "mcp";
    const id = itemId(prefix, this.nowMs);
    const noted = { tool, callId, argumentsText, id, outputIndex: this.base + index };
    this.roundCalls.set(callId, noted);
    return noted;
  }

  /**
   * Takes the whole answer of a round: adds its items to the output, and runs the tools that it
   * calls. `onEnded` receives each call as soon as it has ended.
   */
  async take(record: ResponseRecord, onEnded: (call: RoundCall) => void): Promise<AfterRound> {
    this.createdAt ??= record["created_at"];
    this.usage.addRound(record["usage"]);
    const items = outputItems(record);
    const calls = items.flatMap((item, index) => this.noteCall(item, index) ?? []);
    this.output.push(...items.map((item) => citingItem(item, this.pages)));
    const runs = calls.filter(({ tool }) => !tool.needsApproval);
    for (const call of calls)
      if (call.tool.needsApproval) this.show(call, approvalItem(call, call.id));
    const results = await this.runAll(runs, onEnded);
    const hasEnded = record["status"] !== "completed";
    const waits = items.some((item) => this.isClients(item)) || runs.length < calls.length;
    if (hasEnded || waits || runs.length === 0) return "ended";
    if (this.roundsAsked >= this.options.maxRounds) return "at-bound";
    this.items.push(...items, ...results);
    return "ask-again";
  }

  /** Returns the response as the client sees it, with the items and the usage of all rounds. */
  shown(record: ResponseRecord, changes: ResponseRecord = {}): ResponseRecord {
    const { body } = this.options.call;
    return {
      ...this.named(record),
      ...(this.createdAt !== undefined && { created_at: this.createdAt }),
      output: this.output,
      ...("output_text" in record && { output_text: textOf(this.output) }),
      ...requestFields(body),
      ...(record["usage"] !== undefined &&
        this.usage.total !== null && {
          usage: this.usage.total,
        }),
      ...changes,
    };
  }

  /** Returns the metadata of a round under the trace id of the whole request. */
  named(record: ResponseRecord): ResponseRecord {
    const metadata = record[brand.metadataKey];
    return typeof metadata !== "object" || metadata === null
      ? record
      : { ...record, [brand.metadataKey]: { ...metadata, requestId: this.options.call.traceId } };
  }

  private show(call: RoundCall, item: ResponseItem): void {
    call.item = item;
    this.output[call.outputIndex] = item;
  }

  /** Returns whether an item is a call that the client has to make. */
  private isClients(item: ResponseItem): boolean {
    const { type, name } = item;
    if (type === "function_call") return this.options.tools.find(name) === undefined;
    return type === "custom_tool_call" || type === "local_shell_call" || type === "shell_call";
  }

  private choiceOf(isLast: boolean): unknown {
    const { tool_choice: choice } = this.options.call.body;
    if (isLast) return "none";
    const { type, server_label: label, name } = Object(choice) as Record<string, unknown>;
    if (type === "mcp" && this.isFirst) {
      const { tools } = this.options;
      const tool = tools.ofServer(String(label), String(name));
      if (tool !== undefined) return { type: "function", name: tool.name };
      if (name === undefined && tools.servers.some((server) => server.label === label))
        return "required";
      const named = JSON.stringify(name ?? label);
      const message = `tool_choice: there is no ${named} among the tools of this request.`;
      throw new GatewayError("bad_request", message, { param: "tool_choice" });
    }
    // A choice that forces a call applies to the first round, or no round could be the last.
    return this.isFirst || choice === "none" ? choice : undefined;
  }

  private async runAll(
    runs: readonly RoundCall[],
    onEnded: (call: RoundCall) => void,
  ): Promise<ResponseItem[]> {
    const results: ResponseItem[] = [];
    for (let start = 0; start < runs.length; start += parallelMax) {
      const ended = await Promise.all(
        runs.slice(start, start + parallelMax).map(async (call) => {
          const ran = await this.run(call);
          this.show(call, endedCallItem(call, { id: call.id, ran, approvalId: null }));
          onEnded(call);
          return resultItem(call.callId, { ran, seesPictures: this.options.seesPictures });
        }),
      );
      results.push(...ended);
    }
    return results;
  }

  private async run({ tool, argumentsText }: Omit<ModelCall, "callId">): Promise<RanTool> {
    const { deps, call, signal, beforeActing } = this.options;
    this.callsMade += 1;
    if (this.callsMade > this.callsMax) return pastBound(this.callsMax);
    if (!onlyReads(tool)) await beforeActing?.();
    const { caller, customer, generationId: calledBy } = call;
    const keepsNothing = asksForNone(call.body);
    const run = { tool, argumentsText, caller, customer, signal, calledBy, keepsNothing };
    const ran = await runTool(deps.toolCalls, run);
    this.usage.addTool(ran.chargedNano);
    this.pages.push(...(ran.pages ?? []));
    return ran;
  }
}

const unavailable = (name: string): RanTool =>
  unmadeRun(`The tool ${name} is not available any more.`);

const pastBound = (most: number): RanTool =>
  unmadeRun(`The request allows ${most} tool calls (max_tool_calls), and they were made.`);

/** Returns the fields of a request that a response repeats, without credentials for servers. */
function requestFields({ tools, tool_choice: choice, max_tool_calls: most }: ResponseRecord) {
  return {
    tools: Array.isArray(tools) ? tools.map(withoutCredentials) : [],
    ...(choice !== undefined && { tool_choice: choice }),
    ...(most !== undefined && { max_tool_calls: most }),
  };
}

function withoutCredentials(tool: unknown): unknown {
  if (!isMcpTool(tool)) return tool;
  const { authorization: _, headers: __, ...rest } = tool as Record<string, unknown>;
  return rest;
}

/** Returns the texts of all messages of an output. */
const textOf = (output: readonly ResponseItem[]): string =>
  output
    .flatMap(({ type, content }) => (type === "message" && Array.isArray(content) ? content : []))
    .map((part: unknown) => (Object(part) as { text?: unknown }).text)
    .filter((text): text is string => typeof text === "string")
    .join("");
