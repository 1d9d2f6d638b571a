import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { missingAgent, runAgent, type AgentRun } from "../agents/support/agent-run.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";

const missing = missingAgent("codex");

describe.skipIf(missing !== undefined)(`Codex${missing ? ` (missing: ${missing})` : ""}`, () => {
  const stage = clientStage();

  const run = (model: string): Promise<AgentRun> =>
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
          base_url = "${stage.gateway.origin}/v1"
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
      const calls = Array.from({ length: 10 }, (_, index) => ({
        id: `call_${index}`,
        name: "exec_command",
        arguments: { cmd: `echo ${index} >> note.txt` },
      }));
      upstream.say(...calls.map((call) => ({ calls: [call] })), { text: ["It is written."] });
      const done = await run(modelIn(dialect));
      expect(done.exitCode).toBe(0);
      expect(done.files.get("note.txt")).toBe("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
      expect(upstream.requests.length - before).toBe(11);
      expect(upstream.requests.at(-1)?.body).toContain("note.txt");
      expect(done.errorOutput).toContain("successfully connected to Responses WebSocket");
      expect(done.errorOutput).not.toMatch(/websocket.*falling back|falling back to HTTP$/im);
    },
  );
});
