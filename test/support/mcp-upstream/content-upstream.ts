import {
  createMcpHandler,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

/** An MCP server with prompts, resources, a template and completions, whose lists tests change. */
export interface ContentUpstream {
  url: string;
  /** The names of its tools and of its prompts. */
  tools: string[];
  prompts: string[];
  /** The methods of the requests that it received. */
  readonly methods: readonly string[];
  /** Says that a list has changed. */
  say(kind: "tools" | "prompts" | "resources"): Promise<void>;
  stop(): Promise<void>;
}

const text = (words: string) => ({ type: "text" as const, text: words });
const noteOf = (uri: string, words: string) => ({ uri, mimeType: "text/plain", text: words });

function buildServer(name: string, { tools, prompts }: Pick<ContentUpstream, "tools" | "prompts">) {
  const listChanged = { listChanged: true };
  const server = new Server(
    { name, version: "1" },
    {
      capabilities: {
        tools: listChanged,
        prompts: listChanged,
        resources: listChanged,
        completions: {},
      },
    },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: tools.map((tool) => ({ name: tool, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler("tools/call", () => ({
    content: [{ type: "resource_link" as const, uri: "note://one", name: "one" }],
  }));
  server.setRequestHandler("prompts/list", () => ({
    prompts: prompts.map((prompt) => ({ name: prompt, arguments: [{ name: "topic" }] })),
  }));
  server.setRequestHandler("prompts/get", ({ params }) => ({
    messages: [
      { role: "user" as const, content: text(`${name}: ${params.arguments?.["topic"]}`) },
      {
        role: "user" as const,
        content: { type: "resource" as const, resource: noteOf("note://one", "first") },
      },
    ],
  }));
  server.setRequestHandler("resources/list", () => ({
    resources: [{ uri: "note://one", name: "one" }],
  }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "note://{id}/text", name: "note" }],
  }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => ({
    contents: [noteOf(uri, uri === "note://long" ? "x".repeat(400_000) : `${name} has ${uri}`)],
  }));
  server.setRequestHandler("completion/complete", ({ params: { ref, argument } }) => ({
    completion: { values: [`${ref.type} ${argument.value}`] },
  }));
  return server;
}

/** Starts one, in one generation of the protocol. */
export function startContentUpstream(
  name: string,
  generation: "legacy" | "modern",
): ContentUpstream {
  const lists = { tools: ["read"], prompts: ["explain"] };
  const methods: string[] = [];
  const handler = createMcpHandler(() => buildServer(name, lists), { legacy: "reject" });
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const listeners = new Set<WebStandardStreamableHTTPServerTransport>();
  async function answerOld(request: Request): Promise<Response> {
    const known = sessions.get(request.headers.get("mcp-session-id") ?? "");
    if (known !== undefined && request.method === "GET") listeners.add(known);
    if (known !== undefined) return known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await buildServer(name, lists).connect(transport);
    return transport.handleRequest(request);
  }
  const listening = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const body = request.method === "POST" ? await request.clone().text() : "{}";
      methods.push((JSON.parse(body) as { method?: string }).method ?? request.method);
      return generation === "modern" ? handler.fetch(request) : answerOld(request);
    },
  });
  return {
    ...lists,
    url: `http://127.0.0.1:${listening.port}/mcp`,
    methods,
    async say(kind) {
      if (generation === "modern") handler.notify[`${kind}Changed`]();
      const message = { jsonrpc: "2.0", method: `notifications/${kind}/list_changed` } as const;
      for (const transport of listeners) await transport.send(message);
    },
    async stop() {
      await handler.close();
      await listening.stop(true);
    },
  };
}
