import type { CallToolResult, Client, Progress } from "@modelcontextprotocol/client";
import type { CustomerShare } from "../../billing/budgets/budget.ts";
import { countedSenders, countedTags } from "../../billing/budgets/counted-request.ts";
import { shortageFacts } from "../../billing/budgets/refusal-facts.ts";
import { assertServed, noteShare, shareOfRequest } from "../../billing/customers/customer-book.ts";
import type { NotReserved } from "../../billing/ledger/hold-rule.ts";
import type { LedgerPort, PostedCharge } from "../../billing/ledger/ledger-port.ts";
import {
  type LlmKeyCaller,
  spendingKeyOf,
  spendingParentOf,
  teamOfKey,
  unlimitedKey,
} from "../../identity/keys/caller.ts";
import {
  generationRow,
  type GenerationRecord,
  singleCallRecord,
  timeOfId,
} from "../../insights/generation-record.ts";
import { searchResult } from "../search/search-tool.ts";
import { customerAdds, senderAdds, usageAdds } from "../../insights/usage/usage-rollup.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { timeOrderedHex } from "../../platform/kernel/ids.ts";
import { usdFromNano, usdPerMillionText, usdText } from "../../platform/kernel/money.ts";
import type { ToolCaller } from "../mcp-service.ts";
import { isNotConnected, type Grants } from "./oauth/grants.ts";
import { answerMs } from "./agents/held-calls.ts";
import { keepCall, type ToolContents } from "./kept-calls.ts";
import type { Listener, ServerConnections } from "./server-connections.ts";
import type { ServerWatch } from "./server-watch.ts";
import { cappedResult } from "./tool-result.ts";
import {
  type ServerUser,
  type ToolDefinition,
  type UpstreamServer,
  usesOauth,
} from "./upstream-server.ts";
import { failureText } from "./upstream-servers.ts";

/** How a call ended. */
type CallOutcome = "completed" | "failed" | "cancelled";

/** A call of a tool of an upstream server, for a caller that may call it. */
interface ToolCall {
  caller: ToolCaller;
  server: UpstreamServer;
  definition: ToolDefinition;
  given: Readonly<Record<string, unknown>>;
  signal: AbortSignal;
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Hears what the server asks and logs; absent where the caller can be asked nothing. */
  listener?: Listener | undefined;
  /** The least level of log messages that the caller wants. */
  logLevel?: string | undefined;
  /** The `gen_` id of the request whose model calls; absent where an agent calls. */
  calledBy?: string | undefined;
  /** Whether that request demands that nothing of it is kept. */
  keepsNothing?: boolean | undefined;
  userAgent?: string | undefined;
  /** The customer that the request names; that of its key comes first. */
  customer?: string | undefined;
}

/** Why a call has no result: its server answered with an error, or did not answer. */
interface ToolFailure {
  type: "protocol_error" | "http_error";
  code: number;
  message: string;
}

/** The outcome of a call, and what was charged for it. */
export type ToolOutcome = { chargedNano: bigint; generationId: string } & (
  | { ok: true; result: CallToolResult }
  | { ok: false; failure: ToolFailure }
);

/** The options of calls. */
interface ToolCallsOptions {
  connections: ServerConnections;
  grants: Pick<Grants, "isConnected" | "noteMissingScope">;
  watch: Pick<ServerWatch, "admit" | "note">;
  publicUrl(): string;
  ledger: LedgerPort;
  clock: Clock;
  /** Where arguments and results are kept; undefined keeps none. */
  contents: ToolContents | undefined;
  /** Returns whether zero data retention applies to a caller. */
  hasZeroRetention(caller: ToolCaller): boolean;
  /** Receives charges that the database refused. */
  onError(error: unknown): void;
}

/** The member of `_meta` that names the least level of log messages (MCP 2026-07-28, "Logging"). */
export const logLevelKey = "io.modelcontextprotocol/logLevel";

const canAnswer = (listener: Listener | undefined): boolean =>
  Object.keys(listener?.capabilities ?? {}).length > 0;

/** Returns the part of the usage that a call of a server is. */
const partOf = ({ target }: UpstreamServer): "searches" | "toolCalls" =>
  target.transport === "search" ? "searches" : "toolCalls";

/** The surface of records of tool calls. */
const surface = "mcp";

/** Returns the name under which analytics count the calls of a tool. */
const recordedTool = ({ server, definition }: ToolCall): string =>
  `${server.id}/${definition.name}`;

/** Returns the name under which analytics count a server. No provider has such an id. */
const recordedServer = ({ server }: ToolCall): string => `mcp/${server.id}`;

/**
 * Calls tools of upstream servers: holds the price of the call, calls, charges, and leaves a record.
 * A call without a result costs nothing, unless its caller left before it.
 */
export class ToolCalls {
  constructor(private readonly options: ToolCallsOptions) {}

  /** Calls a tool. Throws `insufficient_balance` where the caller cannot pay for it. */
  async call(call: ToolCall): Promise<ToolOutcome> {
    const { clock } = this.options;
    const isAway = await this.isNotConnected(call);
    const generationId = `gen_${timeOrderedHex(clock.nowMs())}`;
    const startedMs = clock.monotonicMs();
    if (isAway) return { ...this.connect(call), generationId };
    await this.hold(call, generationId);
    try {
      const result = await this.watched(call);
      const { chargedNano } = await this.settle(call, {
        generationId,
        startedMs,
        status: "completed",
      });
      this.keep(call, { generationId, result });
      return { ok: true, result, chargedNano, generationId };
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      const isLeft = call.signal.aborted;
      const { chargedNano } = await this.settle(call, {
        generationId,
        startedMs,
        status: isLeft ? "cancelled" : "failed",
      });
      if (isNotConnected(error)) return { ...this.connect(call), generationId };
      if (await this.wantsScope(call, error))
        return { ...this.connect(call, "wants more rights than it was given"), generationId };
      return { ok: false, failure: failureOf(error), chargedNano, generationId };
    }
  }

  private async isNotConnected({ server, caller }: ToolCall): Promise<boolean> {
    return usesOauth(server) && !(await this.options.grants.isConnected(server, userOf(caller)));
  }

  /** Returns whether a server refused a call since its tokens do not allow it. */
  private async wantsScope({ server, caller }: ToolCall, error: unknown): Promise<boolean> {
    if (!usesOauth(server)) return false;
    return this.options.grants.noteMissingScope(error, { server, user: userOf(caller) });
  }

  private connect({ server }: ToolCall, reason = "is not connected yet") {
    const result = connectResult(server, { publicUrl: this.options.publicUrl(), reason });
    return { ok: true as const, result, chargedNano: 0n };
  }

  /** Asks a server that is not left alone, and notes whether it answered. */
  private async watched(call: ToolCall): Promise<CallToolResult> {
    const { watch, clock } = this.options;
    const { server, caller, signal } = call;
    const workspaceId = caller.workspace.id;
    watch.admit(server, workspaceId);
    const startedMs = clock.monotonicMs();
    const note = (outcome: Parameters<typeof watch.note>[1]["outcome"]): void => {
      const latencyMs = Math.round(clock.monotonicMs() - startedMs);
      watch.note(server, { workspaceId, outcome, latencyMs });
    };
    try {
      const result = await this.ask(call);
      note("completed");
      return result;
    } catch (error) {
      if (signal.aborted) note("cancelled");
      else note(isServerFailure(error) ? "failed" : "refused");
      throw error;
    }
  }

  private async ask(call: ToolCall) {
    const { caller, server, definition, given, signal, onProgress, listener, logLevel } = call;
    if (server.target.transport === "search")
      return searchResult(server.target.search, { given, signal });
    const { outputSchema: _, ...known } = definition;
    const timeout = server.timeoutMs + (canAnswer(listener) ? answerMs : 0);
    const work = (client: Client) =>
      client.callTool(
        {
          name: definition.name,
          arguments: { ...given },
          ...(logLevel !== undefined && { _meta: { [logLevelKey]: logLevel } }),
        },
        {
          signal,
          timeout,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: timeout * 10,
          // The hints of the protocol's headers come from the pinned definition.
          toolDefinition: known as never,
          ...(onProgress && { onprogress: onProgress }),
        },
      );
    const result = await this.options.connections.use(server, userOf(caller), work, listener);
    return cappedResult(result as CallToolResult, server.resultBytesMax);
  }

  private keep(
    { caller, server, definition, given, keepsNothing = false }: ToolCall,
    { generationId, result }: { generationId: string; result: CallToolResult },
  ): void {
    if (keepsNothing) return;
    const { contents, clock } = this.options;
    const tool = { server: server.id, tool: definition.name, given };
    keepCall(contents, { ...tool, caller, generationId, surface, result, nowMs: clock.nowMs() });
  }

  private async hold(call: ToolCall, generationId: string): Promise<void> {
    const {
      caller,
      server: { priceNanoUsd },
    } = call;
    const { ledger } = this.options;
    assertServed(ledger, { caller: payerOf(caller), customer: call.customer });
    const share = shareOf(ledger, call);
    const outcome = await ledger.reserve({
      holdId: generationId,
      workspaceId: caller.workspace.id,
      ceilingNano: priceNanoUsd,
      // A call is paid whole or not made.
      tight: () => ({ beginNano: priceNanoUsd, leastNano: priceNanoUsd, takesShare: false }),
      ...spendingKeyOf(spendingKey(caller)),
      parent: caller.kind === "llm-key" ? spendingParentOf(caller) : undefined,
      tags: () => tagsOf(ledger, { call, share, generationId }),
    });
    if (!outcome.ok) throw unpaid(call, outcome);
  }

  private async settle(
    call: ToolCall,
    {
      generationId,
      startedMs,
      status,
    }: { generationId: string; startedMs: number; status: CallOutcome },
  ): Promise<Pick<PostedCharge, "chargedNano">> {
    const { ledger, clock } = this.options;
    const amountNano = status === "failed" ? 0n : call.server.priceNanoUsd;
    const latencyMs = Math.round(clock.monotonicMs() - startedMs);
    const share = shareOf(ledger, call);
    const userAgent = this.options.hasZeroRetention(call.caller) ? undefined : call.userAgent;
    const { durable } = ledger.post({
      holdId: generationId,
      amountNano,
      tags: () => tagsOf(ledger, { call, share, generationId }),
      alongside: (posted) => {
        const record = recordOf(
          { ...call, userAgent },
          { generationId, latencyMs, status, posted },
        );
        noteShare(record, share);
        const adds = [
          ...usageAdds(record),
          ...senderAdds(record, countedSenders(countedOf(call, generationId), ledger)),
          ...customerAdds(record),
        ];
        return { inserts: [generationRow(record)], adds };
      },
    });
    if (amountNano === 0n) {
      durable.catch(this.options.onError);
      return { chargedNano: 0n };
    }
    try {
      const posted = await durable;
      return { chargedNano: posted.ok ? posted.chargedNano : 0n };
    } catch (error) {
      this.options.onError(error);
      throw new GatewayError(
        "service_unavailable",
        "The charge could not be recorded, so nothing was charged. Try again.",
        { retryAfterSeconds: 1, cause: error },
      );
    }
  }
}

/** Returns the caller as servers know it: its session, and the person who made its key. */
export const userOf = (caller: ToolCaller): ServerUser => ({
  session: `${caller.workspace.id} ${caller.key.id}`,
  workspaceId: caller.workspace.id,
  personId: caller.kind === "management-key" ? caller.key.id : caller.key.creatorUserId,
});

/** Returns the result that asks a person to connect a server. */
function connectResult(
  { id, name }: UpstreamServer,
  { publicUrl, reason }: { publicUrl: string; reason: string },
): CallToolResult {
  const url = `${publicUrl}/connect/${id}`;
  const text =
    `${name} ${reason}. Open ${url} in a browser as the person whose key this is, ` +
    "and call the tool again.";
  return { content: [{ type: "text", text }], isError: true };
}

/** Returns the key that pays. A management key has no limit of its own. */
const spendingKey = (caller: ToolCaller) =>
  caller.kind === "management-key"
    ? unlimitedKey({
        id: caller.key.id,
        workspaceId: caller.workspace.id,
        creatorUserId: caller.key.id,
      })
    : caller.key;

const shareOf = (ledger: Pick<LedgerPort, "customers">, call: ToolCall) =>
  call.caller.kind === "llm-key"
    ? shareOfRequest(ledger, {
        caller: call.caller,
        customer: call.customer,
        models: [recordedTool(call)],
      })
    : undefined;

/** Returns the caller with the key that pays. */
const payerOf = (caller: ToolCaller): LlmKeyCaller =>
  caller.kind === "llm-key"
    ? caller
    : { kind: "llm-key", workspace: caller.workspace, key: spendingKey(caller) };

/** Returns a call as budgets count it. */
const countedOf = (call: ToolCall, generationId: string) => ({
  caller: payerOf(call.caller),
  customer: call.customer,
  models: [recordedTool(call)],
  providers: [recordedServer(call)],
  atMs: timeOfId(generationId),
});

const tagsOf = (
  ledger: LedgerPort,
  {
    call,
    share,
    generationId,
  }: { call: ToolCall; share: CustomerShare | undefined; generationId: string },
): string[] => countedTags(countedOf(call, generationId), { ledger, share });

function unpaid(call: ToolCall, refused: NotReserved): GatewayError {
  const { reason, freeNano, heldNano } = refused;
  if (reason === "away" || reason === "mismatch" || reason === "exists")
    return new GatewayError(
      "service_unavailable",
      "The gateway cannot hold the price of this call at the moment. Try again in a few seconds.",
      { retryAfterSeconds: 2 },
    );
  const { priceNanoUsd } = call.server;
  const left = freeNano < 0n ? 0n : freeNano;
  return new GatewayError(
    "insufficient_balance",
    `A call of ${recordedTool(call)} costs ${usdText(priceNanoUsd)} USD, and ${usdText(left)} USD is left. ` +
      "Add credits, or raise the limit.",
    {
      metadata: {
        ...shortageFacts(refused),
        worst_case_usd: usdFromNano(priceNanoUsd),
        available_usd: usdFromNano(left),
        held_usd: usdFromNano(heldNano),
      },
    },
  );
}

function recordOf(
  call: ToolCall,
  {
    generationId,
    latencyMs,
    status,
    posted,
  }: {
    generationId: string;
    latencyMs: number;
    status: CallOutcome;
    posted: PostedCharge;
  },
): GenerationRecord {
  const { caller, server, calledBy, userAgent } = call;
  const team = teamOfKey(payerOf(caller));
  return singleCallRecord({
    id: generationId,
    workspaceId: caller.workspace.id,
    keyId: caller.key.id,
    surface,
    model: recordedTool(call),
    provider: recordedServer(call),
    upstreamModel: call.definition.name,
    status: status === "completed" ? "served" : status,
    upstreamStatus: status === "completed" ? 200 : null,
    costNanoUsd: posted.chargedNano,
    latencyMs,
    detail: {
      usage: { [partOf(server)]: 1 },
      priceVersion: null,
      price: { [partOf(server)]: usdPerMillionText(server.priceNanoUsd * 1_000n) },
      holdNanoUsd: String(posted.heldNano),
      ...(calledBy !== undefined && { calledBy }),
      ...(team !== undefined && { team }),
      ...(userAgent !== undefined && { userAgent: userAgent.slice(0, 256) }),
      ...(posted.chargeId !== undefined && { chargeId: posted.chargeId }),
    },
  });
}

/** Returns whether a server did not answer, or could not; its refusals are answers. */
function isServerFailure(error: unknown): boolean {
  if (isNotConnected(error)) return false;
  const { type, code } = failureOf(error);
  return type === "http_error" && code >= 500;
}

/** Returns how a call failed: with an error of the protocol, or on the way. */
function failureOf(error: unknown): ToolFailure {
  const message = failureText(error);
  if (typeof error !== "object" || error === null)
    return { type: "http_error", code: 502, message };
  if ("code" in error && typeof error.code === "number")
    return { type: "protocol_error", code: error.code, message };
  const data = "data" in error ? (Object(error.data) as { status?: unknown }) : {};
  const isTimeout = "code" in error && String(error.code).toLowerCase().includes("timeout");
  const status = typeof data.status === "number" ? data.status : isTimeout ? 504 : 502;
  return { type: "http_error", code: status, message };
}
