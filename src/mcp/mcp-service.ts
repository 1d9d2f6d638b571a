import type { CallToolResult, McpHttpHandler, Server, Tool as ListedTool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { GatewayError } from "../platform/lib/errors.ts";
import { brand } from "../platform/lib/brand.ts";
import { mayUse, permissionDenied, type KnownCaller } from "./tool-access.ts";
import { endpointName, type ToolEndpoint } from "./tool-endpoint.ts";
import type { McpSdk as Sdk, Tool, ToolContext } from "./tool.ts";
import { serveResources } from "./resources.ts";
import { servePrompts } from "./workspace-prompts.ts";

/** One request to the MCP server, whose caller is known. */
export interface McpRequest {
  known: KnownCaller;
  /** What tool calls are given. */
  tools: ToolContext;
}

/** What the MCP server is built from. */
export interface McpOptions {
  version: string;
  tools: readonly Tool[];
  endpoints: readonly ToolEndpoint[];
  /** Receives what a tool threw that is no refusal. */
  onError(error: unknown): void;
}

const instructions = `Tools of ${brand.productName}, an inference gateway: choose models, read usage and credits, and administer API keys. `
  + "Money is in USD. A key's secret is shown once, by create_key; do not repeat it.";

/** A schema as JSON Schema; unknown members stay allowed, since answers may grow. */
const jsonSchemaOf = (schema: z.ZodType): Record<string, unknown> => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });

/** A JSON Schema of an object, as MCP wants it of results; undefined for any other. */
function objectSchema(schema: z.ZodType | undefined): ListedTool["outputSchema"] {
  const found = schema && jsonSchemaOf(schema);
  // A schema with a name is a reference to its definition beside it.
  return found?.["type"] === "object" || found?.["$ref"] !== undefined ? { ...found, type: "object" } : undefined;
}

/** A tool as `tools/list` shows it. */
function listedTool({ name, title, description, effect, input, output, endpoint }: Tool, endpoints: readonly ToolEndpoint[]): ListedTool {
  // Pages below the root share paths with the API.
  const answering = endpoints.find((each) => each.base === "api" && endpointName(each) === endpoint);
  const outputSchema = objectSchema(output ?? answering?.response);
  return {
    name, title, description,
    inputSchema: { ...jsonSchemaOf(input), type: "object" },
    ...(outputSchema === undefined ? {} : { outputSchema }),
    annotations: { title, readOnlyHint: effect === "nothing", destructiveHint: effect === "destroys", openWorldHint: false },
  };
}

const gatewayFailed = "The gateway failed on this call. Try again, and quote the time when you report it.";

const failed = (message: string): CallToolResult => ({ content: [{ type: "text", text: message }], isError: true });

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** The MCP server: stateless, so that any gateway answers any request, in both generations of the protocol. */
export class McpService {
  readonly endpoints: readonly ToolEndpoint[];
  private readonly options: McpOptions;
  private readonly toolsByName: ReadonlyMap<string, Tool>;
  private readonly listed = new Map<Tool, ListedTool>();
  /** Requests that are served, by what the SDK hands through. */
  private readonly served = new WeakMap<object, McpRequest>();
  private loading: Promise<{ sdk: Sdk; modern: McpHttpHandler }> | undefined;

  constructor(options: McpOptions) {
    this.options = options;
    this.endpoints = options.endpoints;
    this.toolsByName = new Map(options.tools.map((tool) => [tool.name, tool]));
  }

  /** Answers one HTTP request, whose body was read and parsed. */
  async answer(request: Request, { parsedBody, known, tools }: McpRequest & { parsedBody: unknown }): Promise<Response> {
    const { sdk, modern } = await (this.loading ??= this.load());
    const authInfo = { token: "", clientId: known.caller.key.id, scopes: [] };
    this.served.set(authInfo, { known, tools });
    if (!await sdk.isLegacyRequest(request, parsedBody)) return modern.fetch(request, { authInfo, parsedBody });
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await this.build(sdk, authInfo).connect(transport);
    return transport.handleRequest(request, { authInfo, parsedBody });
  }

  /** Ends streams that are open. */
  async close(): Promise<void> {
    await (await this.loading)?.modern.close();
  }

  private async load(): Promise<{ sdk: Sdk; modern: McpHttpHandler }> {
    const sdk = await import("@modelcontextprotocol/server");
    return { sdk, modern: sdk.createMcpHandler(({ authInfo }) => this.build(sdk, authInfo), { legacy: "reject" }) };
  }

  private build(sdk: Sdk, authInfo: object | undefined): Server {
    const { Server: SdkServer, ProtocolError, ProtocolErrorCode } = sdk;
    const request = authInfo && this.served.get(authInfo);
    if (request === undefined) throw new Error("a request to the MCP server has no caller");
    const server = new SdkServer(
      { name: brand.productName.toLowerCase(), title: brand.productName, version: this.options.version },
      { capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} }, instructions },
    );
    server.setRequestHandler("tools/list", () => ({ tools: this.toolsFor(request.known) }));
    server.setRequestHandler("tools/call", ({ params }) => {
      const tool = this.toolsByName.get(params.name);
      if (tool === undefined || (tool.operators && !mayUse(tool, request.known))) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}. tools/list lists them.`);
      }
      return this.call(tool, { given: params.arguments ?? {}, request });
    });
    const tools = this.withSafeErrors(sdk, request.tools);
    servePrompts(server, { sdk, tools });
    serveResources(server, { sdk, tools });
    return server;
  }

  /** The same where a failure of the gateway, whose message the SDK would send, is logged and answered in general words. */
  private withSafeErrors({ ProtocolError, ProtocolErrorCode }: Sdk, tools: ToolContext): ToolContext {
    const ask: ToolContext["ask"] = async (call) => {
      try {
        return await tools.ask(call);
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        this.options.onError(error);
        throw new ProtocolError(ProtocolErrorCode.InternalError, gatewayFailed);
      }
    };
    return { ...tools, ask };
  }

  private toolsFor(known: KnownCaller): ListedTool[] {
    return this.options.tools.filter((tool) => mayUse(tool, known)).map((tool) => {
      const listed = this.listed.get(tool) ?? listedTool(tool, this.options.endpoints);
      this.listed.set(tool, listed);
      return listed;
    });
  }

  private async call(tool: Tool, { given, request: { known, tools } }: { given: Record<string, unknown>; request: McpRequest }) {
    try {
      if (!mayUse(tool, known)) throw permissionDenied(tool, known);
      const result = await tool.call(given, tools);
      const text = { type: "text" as const, text: JSON.stringify(result) };
      return isRecord(result) ? { content: [text], structuredContent: result } : { content: [text] };
    } catch (error) {
      if (error instanceof GatewayError) return failed(error.message);
      this.options.onError(error);
      return failed(gatewayFailed);
    }
  }
}
