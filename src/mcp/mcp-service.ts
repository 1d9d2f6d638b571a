import type { McpHttpHandler, McpServer, Server } from "@modelcontextprotocol/server";
import { z } from "zod";
import { lazily } from "../platform/kernel/keyed-mutex.ts";
import type { KnownCaller } from "./tool-access.ts";
import type { ToolEndpoint } from "./tool-endpoint.ts";
import type { McpSdk, Tool, ToolContext } from "./tool.ts";

const toolCallSchema = z.object({
  method: z.literal("tools/call"),
  params: z.object({ name: z.string() }),
});

/** One request to the MCP server, whose caller is known. */
export interface McpRequest {
  known: KnownCaller;
  /** What tool calls are given. */
  tools: ToolContext;
}

/** Makes the server that answers one request. */
export type BuildMcpServer = (sdk: McpSdk, request: McpRequest) => Server | McpServer;

/** The tools, and what makes the server that offers them. */
export interface ServedTools {
  tools: readonly Tool[];
  build: BuildMcpServer;
}

/** What the first request loads. */
interface Loaded {
  sdk: McpSdk;
  modern: McpHttpHandler;
  build: BuildMcpServer;
  /** Names of the tools that are not for operators alone. */
  openTools: ReadonlySet<string>;
}

/**
 * MCP over HTTP: stateless, so that any gateway answers any request, in both generations of the
 * protocol.
 */
export class McpService {
  readonly endpoints: readonly ToolEndpoint[];
  private readonly loaded: () => Promise<Loaded>;
  /** Requests that are served, by what the SDK hands through. */
  private readonly served = new WeakMap<object, McpRequest>();
  private modern: McpHttpHandler | undefined;

  /** `loadTools` is called by the first request. */
  constructor({
    endpoints,
    loadTools,
  }: {
    endpoints: readonly ToolEndpoint[];
    loadTools: () => Promise<ServedTools>;
  }) {
    this.endpoints = endpoints;
    this.loaded = lazily(() => this.load(loadTools));
  }

  /** Whether the answer to a message depends on whether its caller is an operator. */
  async concernsOperators(message: unknown): Promise<boolean> {
    const { openTools } = await this.loaded();
    const call = toolCallSchema.safeParse(message);
    return !call.success || !openTools.has(call.data.params.name);
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  async answer(
    request: Request,
    { parsedBody, known, tools }: McpRequest & { parsedBody: unknown },
  ): Promise<Response> {
    const { sdk, modern, build } = await this.loaded();
    const authInfo = { token: "", clientId: known.caller.key.id, scopes: [] };
    this.served.set(authInfo, { known, tools });
    if (!(await sdk.isLegacyRequest(request, parsedBody)))
      return modern.fetch(request, { authInfo, parsedBody });
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      enableJsonResponse: true,
    });
    await build(sdk, this.requestOf(authInfo)).connect(transport);
    return transport.handleRequest(request, { authInfo, parsedBody });
  }

  /** Ends streams that are open. */
  async close(): Promise<void> {
    await this.modern?.close();
  }

  private async load(loadTools: () => Promise<ServedTools>): Promise<Loaded> {
    const [sdk, { tools, build }] = await Promise.all([
      import("@modelcontextprotocol/server"),
      loadTools(),
    ]);
    const modern = sdk.createMcpHandler(({ authInfo }) => build(sdk, this.requestOf(authInfo)), {
      legacy: "reject",
    });
    this.modern = modern;
    return {
      sdk,
      modern,
      build,
      openTools: new Set(tools.filter(({ operators }) => !operators).map(({ name }) => name)),
    };
  }

  private requestOf(authInfo: object | undefined): McpRequest {
    const request = authInfo && this.served.get(authInfo);
    if (request === undefined) throw new Error("a request to the MCP server has no caller");
    return request;
  }
}
