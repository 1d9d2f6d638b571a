import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  inputResponse,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";

/** An MCP server whose tools ask their client, in one generation of the protocol. */
export interface AskingUpstream {
  url: string;
  stop(): Promise<void>;
}

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

/** Whether the servers of this process have another tool, which a call of `log` adds. */
let extended = false;

function buildServer(): Server {
  const server = new Server(
    { name: "asking", version: "1" },
    { capabilities: { tools: { listChanged: true }, logging: {} } },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: ["name", "opinion", "log", ...(extended ? ["more"] : [])].map((name) => ({
      name,
      inputSchema: { type: "object" as const },
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    if (params.name === "more") return text("more");
    const answers = mcpReq.inputResponses;
    if (params.name === "log") {
      if (params.arguments?.["extend"] === true) {
        extended = true;
        await mcpReq.notify({ method: "notifications/tools/list_changed" });
      }
      await mcpReq.log("warning", "the disk is nearly full", "disk");
      return text("logged");
    }
    if (params.name === "name") {
      const given = acceptedContent(answers, "who", z.object({ name: z.string() }));
      if (given !== undefined) return text(`hello ${given.name}`);
      if (answers !== undefined) return text("no name");
      const requestedSchema = {
        type: "object" as const,
        properties: { name: { type: "string" as const } },
      };
      const who = inputRequired.elicit({ message: "Who are you?", requestedSchema });
      return inputRequired({ inputRequests: { who } });
    }
    const opinion = inputResponse(answers, "opinion");
    if (opinion.kind === "sampling") return text(JSON.stringify(opinion.result.content));
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Well?" } }];
    const ask = inputRequired.createMessage({ messages, maxTokens: 10 });
    return inputRequired({ inputRequests: { opinion: ask } });
  });
  return server;
}

/** Serves requests of the older generation, in sessions. */
export function sessions(build: () => Pick<Server, "connect">) {
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request: Request): Promise<Response> => {
    const known = open.get(request.headers.get("mcp-session-id") ?? "");
    if (known !== undefined) return known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void open.set(id, transport),
    });
    await build().connect(transport);
    return transport.handleRequest(request);
  };
}

/** Starts one. */
export function startAskingUpstream(generation: "legacy" | "modern"): AskingUpstream {
  const handler = createMcpHandler(buildServer, { legacy: "reject" });
  const old = sessions(buildServer);
  const listening = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => (generation === "legacy" ? old(request) : handler.fetch(request)),
  });
  return {
    url: `http://127.0.0.1:${listening.port}/mcp`,
    async stop() {
      await handler.close();
      await listening.stop(true);
    },
  };
}
