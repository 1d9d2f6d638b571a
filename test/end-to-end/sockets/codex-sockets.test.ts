import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { provider, startGateway, testLlmKey } from "../../support/gateway.ts";
import { converseEvent, converseHead } from "../../support/upstream/amazon-converse-wire.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { stream, type Script } from "../../support/upstream/steps.ts";
import { missingAgent, runAgent, type AgentRun } from "../agents/support/agent-run.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";

const missing = missingAgent("codex");

const callCount = 10;
const commandOf = (index: number) => ({ cmd: `echo ${index} >> note.txt` });
const note = Array.from({ length: callCount }, (_, index) => `${index}\n`).join("");

/** A streamed answer of Bedrock with one block. */
const converse = (start: object, delta: object, stopReason: string): Script =>
  stream(
    [
      converseEvent("messageStart", { role: "assistant" }),
      converseEvent("contentBlockStart", { contentBlockIndex: 0, start }),
      converseEvent("contentBlockDelta", { contentBlockIndex: 0, delta }),
      converseEvent("contentBlockStop", { contentBlockIndex: 0 }),
      converseEvent("messageStop", { stopReason }),
      converseEvent("metadata", {
        usage: { inputTokens: 11, outputTokens: 7, totalTokens: 18 },
        metrics: { latencyMs: 12 },
      }),
    ],
    { headers: converseHead },
  );

/** Expects that an agent wrote its note in ten calls, over a socket alone. */
function expectNoteOverSocket(done: AgentRun): void {
  expect(done.exitCode).toBe(0);
  expect(done.files.get("note.txt")).toBe(note);
  expect(done.errorOutput).toContain("successfully connected to Responses WebSocket");
  expect(done.errorOutput).not.toMatch(/websocket.*falling back|falling back to HTTP$/im);
}

describe.skipIf(missing !== undefined)(`Codex${missing ? ` (missing: ${missing})` : ""}`, () => {
  const stage = clientStage();

  const run = (model: string, origin = stage.gateway.origin): Promise<AgentRun> =>
    runAgent({
      name: "codex",
      parameters: [
        "exec",
        "--skip-git-repo-check",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "Write a note.",
      ],
      variables: {
        GATEWAY_KEY: testLlmKey,
        RUST_LOG: "codex_core=debug,codex_api=debug,codex_client=debug",
      },
      prepare: (home) =>
        Bun.write(
          join(home, ".codex", "config.toml"),
          `
          model = "${model}"
          model_provider = "gateway"
          check_for_update_on_startup = false
          analytics.enabled = false
          [model_providers.gateway]
          name = "gateway"
          base_url = "${origin}/v1"
          env_key = "GATEWAY_KEY"
          wire_api = "responses"
          supports_websockets = true
          request_max_retries = 0
          stream_max_retries = 0
          `,
        ),
    });

  test.each(upstreamDialects)(
    "works over a socket in a turn of ten calls, over %s",
    async (dialect) => {
      const { upstream } = stage;
      const before = upstream.requests.length;
      const calls = Array.from({ length: callCount }, (_, index) => ({
        id: `call_${index}`,
        name: "exec_command",
        arguments: commandOf(index),
      }));
      upstream.say(...calls.map((call) => ({ calls: [call] })), { text: ["It is written."] });
      const done = await run(modelIn(dialect));
      expect(upstream.requests.length - before).toBe(callCount + 1);
      expect(upstream.requests.at(-1)?.body).toContain("note.txt");
      expectNoteOverSocket(done);
    },
  );

  test("works over a socket in a turn of ten calls, over amazon-converse", async () => {
    const bedrock = await startFaultUpstream();
    const calls = Array.from({ length: callCount }, (_, index) => ({
      start: { toolUse: { toolUseId: `tooluse_${index}`, name: "exec_command" } },
      delta: { toolUse: { input: JSON.stringify(commandOf(index)) } },
    }));
    bedrock.enqueue(
      ...calls.map(({ start, delta }) => converse(start, delta, "tool_use")),
      converse({}, { text: "It is written." }, "end_turn"),
    );
    const models = [
      {
        id: "bedrock/nova",
        upstream_model: "us.amazon.nova-pro-v1:0",
        context_length: 131_072,
        max_completion_tokens: 8_192,
        pricing: { prompt: "1", completion: "2" },
        capabilities: ["chat", "function-calling"],
      },
    ];
    const gateway = await startGateway({
      providers: [
        provider({
          id: "bedrock",
          dialect: "amazon-converse",
          base_url: bedrock.baseUrl,
          api_key: "secret",
          models,
        }),
      ],
    });
    try {
      expectNoteOverSocket(await run("bedrock/nova", gateway.origin));
      expect(bedrock.requests.length).toBe(callCount + 1);
    } finally {
      await gateway.stop();
      bedrock.stop();
    }
  });
});
