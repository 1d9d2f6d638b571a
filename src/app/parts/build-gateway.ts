import type { Dependencies } from "../../endpoints/dependencies.ts";
import { HiddenTurns } from "../../endpoints/inference/tools/chat/hidden-turns.ts";
import type { InferenceDependencies } from "../../inference/pipeline/execution.ts";
import { type McpGateway, openMcpGateway } from "../../mcp/gateway/open-gateway.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import type { Account } from "../open-account.ts";
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
  { mcp, search, version, publicUrl, extraCertificates: certificates }: AppSettings,
  {
    account,
    storage,
    inference: { contents },
    clock,
    logger,
    metrics,
  }: {
    account: Account;
    storage: Storage<AppTables>;
    /** What keeps contents. */
    inference: Pick<InferenceDependencies, "contents">;
    clock: Clock;
    logger: Logger;
    metrics: Metrics;
  },
): Gateway {
  const gateway = openMcpGateway(mcp ?? { servers: [], allowedNetworks: [] }, {
    ledger: account.ledger,
    operatorWorkspaceId: account.operatorWorkspaceId,
    servers: storage.database.withTables(),
    grants: storage.database.withTables(),
    vault: account.providerKeyVault,
    clock,
    version,
    contents,
    certificates,
    metrics,
    publicUrl,
    onError: (error) => logger.error({ err: error }, "an upstream MCP server failed"),
  });
  return {
    ...gateway,
    maxToolRounds: mcp?.maxRounds ?? defaultRounds,
    hiddenTurns: new HiddenTurns(),
    search,
  };
}
