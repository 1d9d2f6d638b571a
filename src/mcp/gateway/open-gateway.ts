import type { Kysely } from "kysely";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { ConfiguredMcp, ConfiguredMcpServer } from "../../platform/config/mcp-settings.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { parseRange } from "../../platform/kernel/network/address-range.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import type { KeyVault } from "../../platform/vault/key-vault.ts";
import type { ProtocolServer } from "../protocol-server.ts";
import { type AgentRequest, agentServer, type Settled } from "./agent-server.ts";
import { Grants, type GrantTables } from "./grants.ts";
import { HeldCalls } from "./held-calls.ts";
import type { ToolContents } from "./kept-calls.ts";
import { ServerConnections } from "./server-connections.ts";
import { UpstreamServerStore, type UpstreamServerTables } from "./server-store.ts";
import { ServerWatch } from "./server-health.ts";
import { ToolCalls } from "./tool-calls.ts";
import { ToolSecrets } from "./tool-secrets.ts";
import { defaultResultBytes, defaultTimeoutMs, type UpstreamServer } from "./upstream-server.ts";
import { UpstreamServers } from "./upstream-servers.ts";

/** The gateway to upstream MCP servers. */
export interface McpGateway {
  upstreamServers: UpstreamServers;
  toolCalls: ToolCalls;
  /** Which servers answer. */
  serverWatch: ServerWatch;
  /** Seals the access to servers that stored requests name. */
  toolSecrets: ToolSecrets;
  /** The tokens with which people use the servers. */
  mcpGrants: Grants;
  /** Serves the tools to agents. */
  agentServer: ProtocolServer<AgentRequest>;
  /** Closes every connection. */
  stopGateway(): Promise<void>;
}

/** What the gateway is made of. */
interface GatewayParts {
  servers: Kysely<UpstreamServerTables>;
  grants: Kysely<GrantTables>;
  vault: KeyVault;
  ledger: LedgerPort;
  clock: Clock;
  version: string;
  /** Where arguments and results of calls are kept; absent where there is no archive. */
  contents: ToolContents | undefined;
  /** All certificates that are trusted, in PEM; absent means the platform's own list. */
  certificates: readonly string[] | undefined;
  /** The workspace under whose key tokens are kept that all workspaces use. */
  operatorWorkspaceId: string;
  metrics: Pick<Metrics, "toolCall" | "toolCallDuration" | "watchToolServers">;
  publicUrl(): string;
  onError(error: unknown): void;
}

/** Opens the gateway. Nothing is connected and no SDK is loaded before the first call. */
export function openMcpGateway(
  { servers, allowedNetworks }: Pick<ConfiguredMcp, "servers" | "allowedNetworks">,
  {
    servers: serverRows,
    grants: grantRows,
    vault,
    ledger,
    clock,
    version,
    contents,
    certificates,
    operatorWorkspaceId,
    metrics,
    publicUrl,
    onError,
  }: GatewayParts,
): McpGateway {
  const guard = {
    allowed: allowedNetworks.flatMap((range) => parseRange(range) ?? []),
    ...(certificates !== undefined && { trusted: certificates }),
  };
  const grants = new Grants({ database: grantRows, vault, guard, clock, operatorWorkspaceId });
  const connections = new ServerConnections({ guard, grants, clock, version });
  const watch = new ServerWatch({ clock, metrics });
  metrics.watchToolServers(() => watch.openCircuits());
  const toolCalls = new ToolCalls({
    connections,
    grants,
    watch,
    ledger,
    clock,
    contents,
    publicUrl,
    onError,
  });
  const held = new HeldCalls<Settled>(clock);
  const served = agentServer(toolCalls, { version, held });
  const upstreamServers = new UpstreamServers({
    operators: servers.map(operatorsServer),
    store: new UpstreamServerStore({ database: serverRows, vault }),
    connections,
    grants,
    guard,
    clock,
    onError,
  });
  connections.onListChanged = ({ server, user }) =>
    upstreamServers.refresh(server, { user }).catch(onError);
  return {
    upstreamServers,
    toolCalls,
    serverWatch: watch,
    toolSecrets: new ToolSecrets(vault),
    mcpGrants: grants,
    agentServer: served,
    async stopGateway() {
      held.close();
      await served.close();
      await connections.close();
    },
  };
}

const operatorsServer = ({
  timeoutMs = defaultTimeoutMs,
  resultBytesMax = defaultResultBytes,
  ...server
}: ConfiguredMcpServer): UpstreamServer => ({
  ...server,
  workspaceId: null,
  timeoutMs,
  resultBytesMax,
  createdAtMs: null,
  updatedAtMs: null,
});
