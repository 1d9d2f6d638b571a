import type { AppSettings } from "../../../../src/app/settings-of.ts";
import { provider, startGateway, type TestGateway } from "../../../support/gateway.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../../support/scripted-upstream/scripted-upstream.ts";
import {
  startMcpUpstream,
  textTool,
  type McpUpstream,
} from "../../../support/mcp-upstream/mcp-upstream.ts";

/** The dialects of upstream whose models call tools through the gateway. */
export const upstreamDialects = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
] as const;

/** A gateway whose models run on a scripted upstream, beside a server of tools. */
export interface ToolStage {
  gateway: TestGateway;
  models: ScriptedUpstream;
  tools: McpUpstream;
  stop(): Promise<void>;
}

/** The USD per call of the stage's server `docs`. */
export const toolPriceUsd = 0.004;

/** Starts the stage: models `scripted/<dialect>`, and the MCP server `docs`, at 0.004 USD a call. */
export async function startToolStage(changes: Partial<AppSettings> = {}): Promise<ToolStage> {
  const models = await startScriptedUpstream();
  const tools = startMcpUpstream([
    textTool("search", ({ text }) => `found ${String(text)}`),
    textTool("fails", () => {
      throw new Error("the disk is full");
    }),
  ]);
  const gateway = await startGateway({
    providers: upstreamDialects.map((dialect) =>
      provider({
        id: `scripted-${dialect}`,
        dialect,
        base_url: models.baseUrl,
        api_key: "secret",
        models: [
          {
            id: `scripted/${dialect}`,
            context_length: 262_144,
            max_completion_tokens: 131_072,
            pricing: { prompt: "1", completion: "2" },
            capabilities: ["chat", "function-calling", "vision"],
          },
        ],
      }),
    ),
    mcp: {
      servers: [
        {
          id: "docs",
          name: "Documentation",
          target: { transport: "streamable_http", url: tools.url },
          auth: { type: "none" },
          allowedTools: null,
          priceNanoUsd: 4_000_000n,
          timeoutMs: undefined,
          resultBytesMax: undefined,
        },
      ],
      allowedNetworks: ["127.0.0.0/8"],
      maxRounds: 6,
    },
    ...changes,
  });
  return {
    gateway,
    models,
    tools,
    async stop() {
      await gateway.stop();
      await models.stop();
      await tools.stop();
    },
  };
}
