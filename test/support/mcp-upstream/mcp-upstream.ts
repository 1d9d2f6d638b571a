import {
  createMcpHandler,
  type CallToolResult,
  Server,
  type Tool,
} from "@modelcontextprotocol/server";

/** A tool of an upstream double: its definition, and what a call answers. */
export interface UpstreamTool {
  tool: Tool;
  call(given: Record<string, unknown>): CallToolResult | Promise<CallToolResult>;
}

/** An MCP server on loopback that tests call through the gateway. */
export interface McpUpstream {
  url: string;
  /** The tools that it lists; tests change them. */
  tools: UpstreamTool[];
  /** The requests that it received: their headers, and their method. */
  requests: { method: string; headers: Headers }[];
  /** The calls of tools that it received. */
  calls: { name: string; given: Record<string, unknown> }[];
  stop(): Promise<void>;
}

/** Returns a tool that answers with a text. */
export const textTool = (
  name: string,
  answer: (given: Record<string, unknown>) => string | Promise<string> = () => `${name} ran`,
  changes: Partial<Tool> = {},
): UpstreamTool => ({
  tool: {
    name,
    description: `Runs ${name}.`,
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
    ...changes,
  },
  call: async (given) => ({ content: [{ type: "text", text: await answer(given) }] }),
});

/** Starts an MCP server with these tools, in both generations of the protocol. */
export function startMcpUpstream(tools: UpstreamTool[]): McpUpstream {
  const upstream: McpUpstream = {
    url: "",
    tools,
    requests: [],
    calls: [],
    stop: async () => {
      await handler.close();
      await listening.stop(true);
    },
  };
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "upstream", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: upstream.tools.map(({ tool }) => tool),
    }));
    server.setRequestHandler("tools/call", ({ params }) => {
      const given = params.arguments ?? {};
      upstream.calls.push({ name: params.name, given });
      const found = upstream.tools.find(({ tool }) => tool.name === params.name);
      if (found === undefined) throw new Error(`no tool ${params.name}`);
      return found.call(given);
    });
    return server;
  });
  const listening = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = request.method === "POST" ? await request.clone().text() : "{}";
      const { method = "" } = JSON.parse(body) as { method?: string };
      upstream.requests.push({ method, headers: request.headers });
      return handler.fetch(request);
    },
  });
  upstream.url = `http://127.0.0.1:${listening.port}/mcp`;
  return upstream;
}
