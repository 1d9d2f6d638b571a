import type { ContractRow } from "./credential-contract.ts";

const servers = ["/mcp", "/v1/mcp", "/api/v1/mcp"].flatMap((path) =>
  ["authorization-server", "protected-resource"].map((name): [string, ContractRow] => [
    `GET /.well-known/oauth-${name}${path}/:server`,
    { without: "open", base: "root", path: `/.well-known/oauth-${name}${path}/docs` },
  ]),
);

/** Rows of the MCP server, and of the gateway to upstream ones. */
export const mcpRows: Record<string, ContractRow> = {
  ...Object.fromEntries(servers),
  "POST /mcp": { llm: true, mcp: true, accepted: 400 },
  "POST /mcp/:server": { llm: true, mcp: true, path: "/mcp/none", accepted: 404 },
  "GET /mcp/:server": { llm: true, mcp: true, path: "/mcp/none", accepted: 405 },
  "GET /client-metadata.json": { without: "open", base: "root" },
  "GET /mcp-servers": { scope: "read:connections" },
  "POST /mcp-servers": { scope: "write:connections", accepted: 400 },
  "GET /mcp-servers/:id": { scope: "read:connections", path: "/mcp-servers/none", accepted: 404 },
  "PATCH /mcp-servers/:id": {
    scope: "write:connections",
    path: "/mcp-servers/none",
    accepted: 404,
  },
  "DELETE /mcp-servers/:id": {
    scope: "write:connections",
    path: "/mcp-servers/none",
    accepted: 404,
  },
  "GET /mcp-servers/:id/connect": {
    session: true,
    path: "/mcp-servers/none/connect",
    accepted: 404,
  },
  "GET /mcp-servers/callback": { session: true, accepted: 400 },
  "DELETE /mcp-servers/:id/connection": {
    session: true,
    path: "/mcp-servers/none/connection",
    accepted: 404,
  },
  "GET /mcp-servers/:id/connections": {
    scope: "read:connections",
    path: "/mcp-servers/none/connections",
    accepted: 404,
  },
  "DELETE /mcp-servers/:id/connections/:user_id": {
    scope: "write:connections",
    path: "/mcp-servers/none/connections/usr_none",
    accepted: 404,
  },
  "GET /connect/:id": {
    without: "open",
    base: "root",
    path: "/connect/none",
    accepted: 303,
  },
  "GET /dashboard/mcp-servers": {
    without: "open",
    base: "root",
    path: "/dashboard/mcp-servers",
    accepted: 404,
  },
  "POST /mcp-servers/:id/refresh": {
    scope: "write:connections",
    path: "/mcp-servers/none/refresh",
    accepted: 404,
  },
};
