import type { McpHttpHandler, McpServer, Server } from "@modelcontextprotocol/server";
import { z } from "zod";
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

/**
 * MCP over HTTP: stateless, so that any gateway answers any request, in both generations of the
 * protocol.
 */
export class McpService {
  readonly endpoints: readonly ToolEndpoint[];
  /** Names of the tools that are not for operators alone. */
  private readonly openTools: ReadonlySet<string>;
  private readonly buildServer: BuildMcpServer;
  /** Requests that are served, by what the SDK hands through. */
  private readonly served = new WeakMap<object, McpRequest>();
  private loading: Promise<{ sdk: McpSdk; modern: McpHttpHandler }> | undefined;

  constructor({
    endpoints,
    tools,
    build,
  }: {
    endpoints: readonly ToolEndpoint[];
    tools: readonly Tool[];
    build: BuildMcpServer;
  }) {
    this.endpoints = endpoints;
    this.openTools = new Set(tools.filter(({ operators }) => !operators).map(({ name }) => name));
    this.buildServer = build;
  }

  /** Whether the answer to a message depends on whether its caller is an operator. */
  concernsOperators(message: unknown): boolean {
    const call = toolCallSchema.safeParse(message);
    return !call.success || !this.openTools.has(call.data.params.name);
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  async answer(
    request: Request,
    { parsedBody, known, tools }: McpRequest & { parsedBody: unknown },
  ): Promise<Response> {
    const { sdk, modern } = await (this.loading ??= this.load());
    const authInfo = { token: "", clientId: known.caller.key.id, scopes: [] };
    this.served.set(authInfo, { known, tools });
    if (!(await sdk.isLegacyRequest(request, parsedBody)))
      return modern.fetch(request, { authInfo, parsedBody });
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      enableJsonResponse: true,
    });
    await this.build(sdk, authInfo).connect(transport);
    return transport.handleRequest(request, { authInfo, parsedBody });
  }

  /** Ends streams that are open. */
  async close(): Promise<void> {
    await (await this.loading)?.modern.close();
  }

  private async load(): Promise<{ sdk: McpSdk; modern: McpHttpHandler }> {
    const sdk = await import("@modelcontextprotocol/server");
    return {
      sdk,
      modern: sdk.createMcpHandler(({ authInfo }) => this.build(sdk, authInfo), {
        legacy: "reject",
      }),
    };
  }

  private build(sdk: McpSdk, authInfo: object | undefined): Server | McpServer {
    const request = authInfo && this.served.get(authInfo);
    if (request === undefined) throw new Error("a request to the MCP server has no caller");
    return this.buildServer(sdk, request);
  }
}
