import type { CallToolResult, Server, Tool as ListedTool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { GatewayError } from "../platform/kernel/errors.ts";
import { brand } from "../platform/kernel/brand.ts";
import { MediaResult } from "./media-result.ts";
import { mayUse, permissionDenied, type McpRequest, type KnownCaller } from "./mcp-service.ts";
import { serveResources } from "./resources.ts";
import {
  endpointName,
  type ToolEndpoint,
  type McpSdk,
  type Tool,
  type ToolContext,
} from "./tool.ts";
import { slugFrom } from "./hub/entry.ts";
import { isObject } from "../platform/kernel/json/json-members.ts";

const promptSchema = z.looseObject({
  id: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.string(),
});
const listSchema = z.looseObject({ data: z.array(promptSchema) });

/** A prompt as MCP names it: clients turn the names into commands. */
interface NamedPrompt {
  name: string;
  title: string;
  description?: string;
  /** The id of the prompt's record. */
  id: string;
}

type Ask = Pick<ToolContext, "ask">;

/**
 * Returns the newest prompts of the caller's workspace that are not private; none for callers
 * without the scope.
 */
async function workspacePrompts({ ask }: Ask): Promise<NamedPrompt[]> {
  const { data } = listSchema.parse(
    await ask({ endpoint: "GET /prompts", query: { limit: 100 } }).catch((error: unknown) => {
      if (error instanceof GatewayError && error.status < 404) return { data: [] };
      throw error;
    }),
  );
  const shown = data.filter(({ visibility }) => visibility !== "private");
  const slugs = shown.map(({ title }) => slugFrom(title) || "prompt");
  return shown.map(({ id, title, description }, index) => {
    const slug = slugs[index] ?? "prompt";
    // Prompts with the same title get a suffix from their id, which stays the same when another
    // prompt changes.
    const name =
      slugs.filter((each) => each === slug).length === 1 ? slug : `${slug}-${id.slice(-8)}`;
    return { id, name, title, ...(description === null ? {} : { description }) };
  });
}

/**
 * Returns the text of a prompt by its name from `workspacePrompts`; undefined where there is none.
 */
async function promptText(
  { ask }: Ask,
  name: string,
): Promise<{ text: string; description?: string } | undefined> {
  const found = (await workspacePrompts({ ask })).find((each) => each.name === name);
  if (found === undefined) return undefined;
  const { body } = z
    .looseObject({ body: z.string() })
    .parse(await ask({ endpoint: "GET /prompts/:id", params: { id: found.id } }));
  return {
    text: body,
    ...(found.description === undefined ? {} : { description: found.description }),
  };
}

/** Serves `prompts/list` and `prompts/get`. */
function servePrompts(
  server: Server,
  { sdk: { ProtocolError, ProtocolErrorCode }, tools }: { sdk: McpSdk; tools: Ask },
): void {
  server.setRequestHandler("prompts/list", async () => ({
    prompts: (await workspacePrompts(tools)).map(({ id: _, ...prompt }) => prompt),
  }));
  server.setRequestHandler("prompts/get", async ({ params }) => {
    const prompt = await promptText(tools, params.name);
    if (prompt === undefined) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no prompt ${params.name}. prompts/list lists them.`,
      );
    }
    const { text, ...rest } = prompt;
    return {
      ...rest,
      messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
    };
  });
}

/** Options of the server of tools. */
export interface ToolServerOptions {
  version: string;
  tools: readonly Tool[];
  endpoints: readonly ToolEndpoint[];
  /** Receives errors of a tool that are no refusals. */
  onError(error: unknown): void;
}

const instructions =
  `Tools of ${brand.productName}, an inference gateway: choose models, make pictures and speech, transcribe sound, read usage and ` +
  "credits, and administer API keys. " +
  "Money is in USD. A key's secret is shown once, by create_key; do not repeat it.";

/** Returns a schema as JSON Schema. Unknown members stay allowed, since answers may grow. */
const jsonSchemaOf = (schema: z.ZodType): Record<string, unknown> =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });

/** Returns the JSON Schema of an object, as MCP requires it of results; undefined for any other. */
function objectSchema(schema: z.ZodType | undefined): ListedTool["outputSchema"] {
  const found = schema && jsonSchemaOf(schema);
  // A schema with a name is a reference to its definition beside it.
  return found?.["type"] === "object" || found?.["$ref"] !== undefined
    ? { ...found, type: "object" }
    : undefined;
}

/** Returns a tool as `tools/list` shows it. */
function listedTool(
  { name, title, description, effect, input, output, endpoint }: Tool,
  endpoints: readonly ToolEndpoint[],
): ListedTool {
  // Pages below the root share paths with the API.
  const answering = endpoints.find(
    (each) => each.base === "api" && endpointName(each) === endpoint,
  );
  const outputSchema = objectSchema(output ?? answering?.response?.());
  return {
    name,
    title,
    description,
    inputSchema: { ...jsonSchemaOf(input), type: "object" },
    ...(outputSchema === undefined ? {} : { outputSchema }),
    annotations: {
      title,
      readOnlyHint: effect === "nothing",
      destructiveHint: effect === "destroys",
      openWorldHint: false,
    },
  };
}

const gatewayFailed =
  "The gateway failed on this call. Try again, and quote the time when you report it.";

const failed = (message: string): CallToolResult => ({
  content: [{ type: "text", text: message }],
  isError: true,
});

/**
 * Builds the server that answers one request: the tools, prompts and resources that its caller may
 * use.
 */
export class ToolServer {
  private readonly toolsByName: ReadonlyMap<string, Tool>;
  private readonly listed = new Map<Tool, ListedTool>();

  constructor(private readonly options: ToolServerOptions) {
    this.toolsByName = new Map(options.tools.map((tool) => [tool.name, tool]));
  }

  /** Returns a server for one request. */
  build(sdk: McpSdk, request: McpRequest): Server {
    const { Server: SdkServer, ProtocolError, ProtocolErrorCode } = sdk;
    const server = new SdkServer(
      {
        name: brand.productName.toLowerCase(),
        title: brand.productName,
        version: this.options.version,
      },
      { capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} }, instructions },
    );
    server.setRequestHandler("tools/list", () => ({ tools: this.toolsFor(request.known) }));
    server.setRequestHandler("tools/call", ({ params }) => {
      const tool = this.toolsByName.get(params.name);
      if (tool === undefined || (tool.operators && !mayUse(tool, request.known))) {
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `There is no tool ${params.name}. tools/list lists them.`,
        );
      }
      return this.call(tool, { given: params.arguments ?? {}, request });
    });
    const tools = this.withSafeErrors(sdk, request.tools);
    servePrompts(server, { sdk, tools });
    serveResources(server, { sdk, tools });
    return server;
  }

  /**
   * Wraps a handler so that a failure of the gateway, whose message the SDK would send, is logged
   * and answered in general words.
   */
  private withSafeErrors(
    { ProtocolError, ProtocolErrorCode }: McpSdk,
    tools: ToolContext,
  ): ToolContext {
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
    return this.options.tools
      .filter((tool) => mayUse(tool, known))
      .map((tool) => {
        const listed = this.listed.get(tool) ?? listedTool(tool, this.options.endpoints);
        this.listed.set(tool, listed);
        return listed;
      });
  }

  private async call(
    tool: Tool,
    { given, request: { known, tools } }: { given: Record<string, unknown>; request: McpRequest },
  ) {
    try {
      if (!mayUse(tool, known)) throw permissionDenied(tool, known);
      const made = await tool.call(given, tools);
      const [result, blocks] = made instanceof MediaResult ? [made.value, made.blocks] : [made, []];
      const text = { type: "text" as const, text: JSON.stringify(result) };
      return isObject(result)
        ? { content: [text, ...blocks], structuredContent: result }
        : { content: [text] };
    } catch (error) {
      if (error instanceof GatewayError) return failed(error.message);
      this.options.onError(error);
      return failed(gatewayFailed);
    }
  }
}
