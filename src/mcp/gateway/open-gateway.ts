import type { Kysely } from "kysely";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { ConfiguredMcp, ConfiguredMcpServer } from "../../platform/config/mcp-settings.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { parseRange } from "../../platform/kernel/network/address-range.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import type { KeyVault } from "../../platform/vault/key-vault.ts";
import type { ProtocolServer } from "../protocol-server.ts";
import type { ToolCaller } from "../mcp-service.ts";
import type { AgentRequest } from "./agents/agent-request.ts";
import { agentServer, goOnWith, type Settled } from "./agents/agent-server.ts";
import { CallsElsewhere } from "./agents/calls-elsewhere.ts";
import { AgentStreams } from "./agents/agent-streams.ts";
import { ListWatch } from "./agents/list-watch.ts";
import { clientDocumentUrl } from "./oauth/authorization-server.ts";
import { Grants, type GrantTables } from "./oauth/grants.ts";
import { HeldCalls } from "./agents/held-calls.ts";
import type { ToolContents } from "./kept-calls.ts";
import { ServerConnections } from "./server-connections.ts";
import { UpstreamServerStore, type UpstreamServerTables } from "./upstream-server-store.ts";
import { ServerWatch } from "./server-watch.ts";
import { ToolCalls } from "./tool-calls.ts";
import { ToolSecrets } from "./tool-secrets.ts";
import { defaultResultBytes, defaultTimeoutMs, type UpstreamServer } from "./upstream-server.ts";
import { UpstreamContents } from "./upstream-contents.ts";
import { UpstreamServers } from "./upstream-servers.ts";
import { type ListChannel, shareListChanges } from "./list-changes.ts";

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
  /** The streams on which agents hear that lists have changed. */
  agentStreams: AgentStreams;
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
  /** The channel to other gateways on the database; absent where there are none. */
  channel?: ListChannel | undefined;
  publicUrl(): string;
  /** Returns whether zero data retention applies to a caller. */
  hasZeroRetention(caller: ToolCaller): boolean;
  /** Returns a caller with what it may do now; undefined where its credential has ended. */
  liveCaller(caller: ToolCaller): ToolCaller | undefined;
  onError(error: unknown): void;
}

/** Opens the gateway. Nothing is connected and no SDK is loaded before the first call. */
export function openMcpGateway(
  { servers, allowedNetworks }: Pick<ConfiguredMcp, "servers" | "allowedNetworks">,
  parts: GatewayParts,
): McpGateway {
  const { vault, clock, version, certificates, metrics, channel, publicUrl, onError } = parts;
  const guard = {
    allowed: allowedNetworks.flatMap((range) => parseRange(range) ?? []),
    ...(certificates !== undefined && { trusted: certificates }),
  };
  const grants = new Grants({
    ...parts,
    database: parts.grants,
    guard,
    documentUrl: () => clientDocumentUrl(publicUrl()),
  });
  const connections = new ServerConnections({ guard, grants, clock, version });
  const watch = new ServerWatch({ clock, metrics });
  metrics.watchToolServers(() => watch.openCircuits());
  const toolCalls = new ToolCalls({ ...parts, connections, grants, watch });
  const held = new HeldCalls<Settled>(clock);
  const contents = new UpstreamContents({ connections, clock });
  const streams = new AgentStreams(parts);
  const elsewhere = channel && new CallsElsewhere(channel, goOnWith(held));
  const served = agentServer(toolCalls, { version, held, elsewhere, contents, streams });
  shareAnswers(served, channel);
  const upstreamServers = new UpstreamServers({
    operators: servers.map(operatorsServer),
    store: new UpstreamServerStore({ database: parts.servers, vault }),
    connections,
    grants,
    guard,
    clock,
    onError,
  });
  shareListChanges({ connections, upstreamServers, contents, streams, channel, onError });
  const listWatch = new ListWatch({ streams, servers: upstreamServers, connections, onError });
  return {
    upstreamServers,
    toolCalls,
    serverWatch: watch,
    toolSecrets: new ToolSecrets(vault),
    mcpGrants: grants,
    agentServer: served,
    agentStreams: streams,
    async stopGateway() {
      listWatch.stop();
      streams.end();
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

const answersChannel = "mcp-answers";

/**
 * Passes answers of agents to the gateway that asked. Up to 2025-11-25 an answer is a request of its
 * own, which may come to any gateway.
 */
function shareAnswers(served: ProtocolServer<AgentRequest>, channel: ListChannel | undefined) {
  if (channel === undefined) return;
  served.passOn = (clientId, body) =>
    channel.publish(answersChannel, JSON.stringify({ clientId, body }));
  channel.on(answersChannel, (message) => {
    const { clientId, body } = JSON.parse(message) as { clientId: string; body: unknown };
    served.takeAnswer(clientId, body);
  });
}
