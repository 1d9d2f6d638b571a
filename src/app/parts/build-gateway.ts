import type { Dependencies } from "../../endpoints/dependencies.ts";
import { HiddenTurns } from "../../endpoints/inference/tools/chat/hidden-turns.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import { isLive, routedCaller } from "../../identity/keys/caller.ts";
import type { ToolCaller } from "../../mcp/mcp-service.ts";
import { type McpGateway, openMcpGateway } from "../../mcp/gateway/open-gateway.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import type { Account } from "../open-account.ts";
import { hasSeveralGateways, type Shared } from "../open-shared.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";

/** The gateway to upstream MCP servers, and what running tools for models needs beside it. */
export interface Gateway
  extends McpGateway,
    Pick<Dependencies, "maxToolRounds" | "hiddenTurns" | "search"> {}

/** The most model rounds of a request whose model calls tools, where the operator sets none. */
const defaultRounds = 16;

/** Builds the gateway to upstream MCP servers. */
export function buildGateway(
  settings: AppSettings,
  {
    account,
    storage,
    inference: { contents, privacyOf },
    clock,
    logger,
    metrics,
    shared,
  }: {
    account: Account;
    storage: Storage<AppTables>;
    /** What keeps contents, and says of whom nothing is kept. */
    inference: Pick<InferenceDependencies, "contents" | "privacyOf">;
    clock: Clock;
    logger: Logger;
    metrics: Metrics;
    /** What several gateways share; absent where there is one. */
    shared: Shared | undefined;
  },
): Gateway {
  const { mcp, search, version, publicUrl, extraCertificates: certificates } = settings;
  const gateway = openMcpGateway(mcp ?? { servers: [], allowedNetworks: [] }, {
    ledger: account.ledger,
    operatorWorkspaceId: account.operatorWorkspaceId,
    servers: withTables(storage.database),
    grants: withTables(storage.database),
    vault: account.providerKeyVault,
    clock,
    version,
    contents,
    certificates,
    metrics,
    channel: hasSeveralGateways(settings) ? shared?.channel : undefined,
    publicUrl,
    hasZeroRetention: (caller) => privacyOf(routedCaller(caller)).zdr,
    liveCaller: (caller) => liveCaller(account, { caller, nowMs: clock.nowMs() }),
    onError: (error) => logger.error({ err: error }, "an upstream MCP server failed"),
  });
  return {
    ...gateway,
    maxToolRounds: mcp?.maxRounds ?? defaultRounds,
    hiddenTurns: new HiddenTurns(),
    search,
  };
}

/** Returns a caller as it is now; undefined where its credential was deleted, or has ended. */
function liveCaller(
  { directory }: Pick<Account, "directory">,
  { caller, nowMs }: { caller: ToolCaller; nowMs: number },
): ToolCaller | undefined {
  const { id } = caller.key;
  if (caller.kind === "management-key") {
    const key = directory.managementKeyById(id);
    const workspace = directory.workspace(caller.workspace.id);
    const now = key && workspace && { kind: caller.kind, key, workspace };
    return now !== undefined && isLive(now, nowMs) ? now : undefined;
  }
  const live = directory.liveLlmKey(id, nowMs) ?? directory.runCaller(id);
  if (live === undefined || caller.kind === "llm-key") return live;
  return { ...caller, key: live.key };
}
