import { queryOptions } from "@tanstack/react-query";
import type { Bodies } from "../../lib/api-types.ts";
import { type List, request, sending } from "../../lib/api.ts";

/** What a server says of a tool. */
export interface ToolDefinition {
  description: string | null;
  input_schema: Readonly<Record<string, unknown>>;
  annotations: Readonly<Record<string, unknown>> | null;
  hash: string;
}

/** A tool with its definition in force, and the one that waits to be accepted. */
export interface Tool extends ToolDefinition {
  name: string;
  title: string | null;
  status: "active" | "not_allowed" | "changed" | "gone";
  changed: ToolDefinition | null;
}

/** An upstream MCP server of the workspace, or of the operator. */
export interface McpServer {
  id: string;
  name: string;
  source: "operator" | "workspace";
  transport: "streamable_http" | "stdio";
  url: string | null;
  auth: { type: string; headers?: readonly string[] };
  allowed_tools: readonly string[] | null;
  price_per_call: number;
  timeout_ms: number;
  status: "ready" | "unreachable" | "not_connected";
  error: string | null;
  /** Whether the person has connected it; null where it is not used with OAuth. */
  connected: boolean | null;
  health: { circuit: "closed" | "open"; failures: number; latency_ms: number | null };
  tools: readonly Tool[];
  checked_at: string | null;
}

/** A person who has connected a server; `user_id` is null where all use the same tokens. */
export interface McpConnection {
  user_id: string | null;
  name: string;
  connected_at: string | null;
}

/** A call of a tool, as its record has it. */
export interface ToolCall {
  id: string;
  created_at: string;
  model: string;
  key_name: string | null;
  status: string;
  total_cost: number;
  total_time: number;
}

export const serversQuery = queryOptions({
  queryKey: ["mcp-servers"],
  queryFn: () => request<List<McpServer>>("/mcp-servers"),
});
export const connectionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["mcp-servers", id, "connections"],
    queryFn: () => request<List<McpConnection>>(`/mcp-servers/${id}/connections`),
  });
export const callsQuery = (id: string) =>
  queryOptions({
    queryKey: ["mcp-servers", id, "calls"],
    queryFn: () =>
      request<List<ToolCall>>(
        `/analytics/generations?surface=mcp&provider=${encodeURIComponent(`mcp/${id}`)}&limit=20`,
      ),
  });

/** Where a person gives the service their own access to a server. */
export const connectAddress = (id: string): string => `/connect/${encodeURIComponent(id)}`;

export const createServer = (body: Bodies["POST /mcp-servers"]) =>
  request<McpServer>("/mcp-servers", sending("POST /mcp-servers", body));
export const changeServer = ({ id, ...body }: Bodies["PATCH /mcp-servers/{id}"] & { id: string }) =>
  request<McpServer>(`/mcp-servers/${id}`, sending("PATCH /mcp-servers/{id}", body));
export const deleteServer = (id: string) => request(`/mcp-servers/${id}`, { method: "DELETE" });
export const refreshServer = ({ id, ...body }: { id: string; accept?: true | string[] }) =>
  request<McpServer>(`/mcp-servers/${id}/refresh`, sending("POST /mcp-servers/{id}/refresh", body));
export const disconnectSelf = (id: string) =>
  request(`/mcp-servers/${id}/connection`, { method: "DELETE" });
export const endConnection = ({ id, userId }: { id: string; userId: string | null }) =>
  request(`/mcp-servers/${id}/connections/${userId ?? "everyone"}`, { method: "DELETE" });
