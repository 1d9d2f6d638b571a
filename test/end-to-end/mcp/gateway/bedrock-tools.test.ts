import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { provider, testLlmKey } from "../../../support/gateway.ts";
import { converseEvent, converseHead } from "../../../support/upstream/amazon-converse-wire.ts";
import {
  startFaultUpstream,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { json, stream, type Script } from "../../../support/upstream/steps.ts";
import { at } from "../../api/at.ts";
import { startToolStage, type ToolStage } from "./tool-stage.ts";

const model = "bedrock/nova";

let stage: ToolStage;
let bedrock: FaultUpstream;
let client: OpenAI;
beforeAll(async () => {
  bedrock = await startFaultUpstream();
  stage = await startToolStage({
    providers: [
      provider({
        id: "bedrock",
        dialect: "amazon-converse",
        base_url: bedrock.baseUrl,
        api_key: "secret",
        models: [
          {
            id: model,
            upstream_model: "us.amazon.nova-pro-v1:0",
            context_length: 131_072,
            max_completion_tokens: 8_192,
            pricing: { prompt: "1", completion: "2" },
            capabilities: ["chat", "function-calling"],
          },
        ],
      }),
    ],
  });
  client = new OpenAI({ apiKey: testLlmKey, baseURL: stage.gateway.baseUrl, maxRetries: 0 });
}, 240_000);
afterAll(async () => {
  await stage.stop();
  bedrock.stop();
});

const usage = { inputTokens: 11, outputTokens: 7, totalTokens: 18 };
const metrics = { latencyMs: 12 };

const whole = (content: object, stopReason: string): Script =>
  json({
    output: { message: { role: "assistant", content: [content] } },
    stopReason,
    usage,
    metrics,
  });

const streamed = (start: object, delta: object, stopReason: string): Script =>
  stream(
    [
      converseEvent("messageStart", { role: "assistant" }),
      converseEvent("contentBlockStart", { contentBlockIndex: 0, start }),
      converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta }),
      converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
      converseEvent("messageStop", { stopReason }),
      converseEvent("metadata", { usage, metrics }),
    ],
    { headers: converseHead },
  );

const toolUse = { toolUseId: "tooluse_1", name: "search" };

/** A model that calls a tool, and then answers. */
function script(isStreamed: boolean): void {
  bedrock.enqueue(
    ...(isStreamed
      ? [
          streamed({ toolUse }, { toolUse: { input: '{"text":"bun"}' } }, "tool_use"),
          streamed({}, { text: "Bun is a runtime." }, "end_turn"),
        ]
      : [
          whole({ toolUse: { ...toolUse, input: { text: "bun" } } }, "tool_use"),
          whole({ text: "Bun is a runtime." }, "end_turn"),
        ]),
  );
}

const tools = [{ type: "mcp", server_label: "docs", require_approval: "never" }] as never;

test.each([false, true])(
  "Bedrock's models call tools on Responses (streamed: %p)",
  async (isStreamed) => {
    script(isStreamed);
    const request = { model, input: "What is Bun?", tools };
    const response = isStreamed
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    expect(response.output_text).toBe("Bun is a runtime.");
    expect(response.output.map(({ type }) => type)).toEqual([
      "mcp_list_tools",
      "mcp_call",
      "message",
    ]);
    const told = JSON.stringify(bedrock.requests.at(-1)?.json());
    expect(told).toContain('"toolResult"');
    expect(told).toContain("found bun");
  },
);

test.each([false, true])(
  "Bedrock's models call tools on chat (streamed: %p)",
  async (isStreamed) => {
    script(isStreamed);
    const request = {
      model,
      messages: [{ role: "user" as const, content: "What is Bun?" }],
      tools,
    };
    const completion = isStreamed
      ? await client.chat.completions.stream(request).finalChatCompletion()
      : await client.chat.completions.create(request);
    expect(completion.choices[0]?.message.content).toBe("Bun is a runtime.");
    expect(at(completion, "usage.total_tokens")).toBe(36);
  },
);
