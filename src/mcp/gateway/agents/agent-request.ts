import { brand } from "../../../platform/kernel/brand.ts";
import type { ToolCaller } from "../../mcp-service.ts";
import type { ExposedTool, ReadServer, ToolLimits } from "../exposed-tools.ts";

/** A request of an agent to one upstream server, or to all of them. */
export interface AgentRequest {
  caller: ToolCaller;
  /** The servers with their tools. */
  servers: readonly ReadServer[];
  /** Whether several servers are joined, so that tools' names begin with their server's id. */
  joined: boolean;
  limits: ToolLimits;
  userAgent?: string | undefined;
  /** The customer that the request names in its header. */
  customer?: string | undefined;
  /** What the client declared that it can be asked, where its generation says so once. */
  capabilities?: unknown;
  /** Records the call of a tool that may change something, before it is called. */
  audit(tool: ExposedTool): Promise<void>;
}

/** The key of `_meta` under which a list says which servers it is made of, and their state. */
export const serversMetaKey = `${brand.routerOwner}/servers`;

/** Returns the state of a server, as lists show it. */
export const stateOf = ({
  server,
  error,
  needsConnection,
}: Pick<ReadServer, "server" | "error" | "needsConnection">) => ({
  id: server.id,
  status: needsConnection ? "not_connected" : error === null ? "ready" : "unreachable",
  ...(error !== null && { error }),
});
