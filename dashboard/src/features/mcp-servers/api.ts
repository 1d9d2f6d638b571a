import { queryOptions } from "@tanstack/react-query";
import type { Bodies, Row } from "../../lib/api-types.ts";
import { type List, request, sending } from "../../lib/api.ts";

/** What a server says of a tool. */
export type ToolDefinition = NonNullable<Tool["changed"]>;

/** A tool with its definition in force, and the one that waits to be accepted. */
export type Tool = McpServer["tools"][number];

/** An upstream MCP server of the workspace, or of the operator. */
export type McpServer = Row<"GET /mcp-servers">;

/** A person who has connected a server; `user_id` is null where all use the same tokens. */
export type McpConnection = Row<"GET /mcp-servers/{id}/connections">;

/** A call of a tool, as its record has it. */
export type ToolCall = Row<"GET /analytics/generations">;

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
