import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { clientDocument } from "./client-document.ts";
import { connectPage } from "./connect-page.ts";
import {
  connectMcpServer,
  disconnectMcpServer,
  finishMcpConnection,
  listMcpConnections,
  removeMcpConnection,
} from "./mcp-connections.ts";
import { mcpChanges, mcpGateway } from "./mcp-gateway.ts";
import {
  changeMcpServer,
  createMcpServer,
  deleteMcpServer,
  getMcpServer,
  listMcpServers,
  refreshMcpServer,
} from "./mcp-servers.ts";
import { mcp } from "./mcp.ts";

/** The service's own tools, and the gateway to those of other servers. */
export const mcpEndpoints: readonly Endpoint<Dependencies>[] = [
  mcp,
  mcpGateway,
  mcpChanges,
  listMcpServers,
  createMcpServer,
  getMcpServer,
  changeMcpServer,
  deleteMcpServer,
  refreshMcpServer,
  connectMcpServer,
  finishMcpConnection,
  disconnectMcpServer,
  listMcpConnections,
  removeMcpConnection,
  connectPage,
  clientDocument,
];
