import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { head, json } from "../../support/upstream/steps.ts";
import { clientStage, codingModel, modelIn } from "../clients/support/client-stage.ts";
import { dialectsByDay } from "./support/dialects-by-day.ts";
import { missingAgent, runAgent, type AgentRun } from "./support/agent-run.ts";

const missing = missingAgent("codex");

describe.skipIf(missing !== undefined)(`Codex${missing ? ` (missing: ${missing})` : ""}`, () => {
  const stage = clientStage();

  /** Codex as its users set it up for a gateway; it asks once, so that requests can be counted. */
  const configuration = (model: string, provider = ""): string => `
    model = "${model}"
    model_provider = "gateway"
    check_for_update_on_startup = false
    analytics.enabled = false
    [model_providers.gateway]
    name = "gateway"
    base_url = "${stage.gateway.origin}/v1"
    env_key = "GATEWAY_KEY"
    wire_api = "responses"
    request_max_retries = 0
    stream_max_retries = 0
    ${provider}
  `;

  const run = (
    model: string,
    { key = testLlmKey, provider }: { key?: string; provider?: string } = {},
  ): Promise<AgentRun> =>
    runAgent({
      name: "codex",
      parameters: [
        "exec",
        "--skip-git-repo-check",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "Write a note.",
      ],
      variables: { GATEWAY_KEY: key },
      async prepare(home) {
        await Bun.write(join(home, ".codex", "config.toml"), configuration(model, provider));
      },
    });

  const command = "echo made by a tool > note.txt && cat note.txt";
  const call = { id: "call_note", name: "exec_command", arguments: { cmd: command } };

  const saidIn = ({ events }: AgentRun): unknown[] =>
    events
      .map(({ item }) => Object(item) as Record<string, unknown>)
      .filter(({ type }) => type === "agent_message")
      .map(({ text }) => text);

  test.each(dialectsByDay("anthropic-messages", "google-generate"))(
    "completes a task over %s",
    async (dialect) => {
      const { upstream } = stage;
      const before = upstream.requests.length;
      upstream.say({ text: ["I will write it."], calls: [call] }, { text: ["It is ", "written."] });
      const done = await run(modelIn(dialect));
      expect(done.exitCode).toBe(0);
      expect(saidIn(done)).toEqual(["I will write it.", "It is written."]);
      expect(done.files.get("note.txt")).toBe("made by a tool\n");
      const bodies = upstream.requests.slice(before).map(({ body }) => body);
      expect(bodies).toHaveLength(2);
      expect(bodies[1]).toContain("made by a tool\\n");
      expect(done.events.at(-1)).toMatchObject({
        type: "turn.completed",
        usage: { input_tokens: 22, output_tokens: 14 },
      });
    },
  );

  test.each(dialectsByDay("openai-chat", "openai-responses"))(
    "patches a file with a grammar tool over %s",
    async (dialect) => {
      const { upstream } = stage;
      const patch = [
        "*** Begin Patch",
        "*** Add File: note.txt",
        "+made by a patch",
        "*** End Patch",
        "",
      ];
      const input = patch.join("\n");
      upstream.say(
        { textCalls: [{ id: "call_patch", name: "apply_patch", input }] },
        { text: ["It is patched."] },
      );
      const provider = `http_headers = { "X-Service-Provider" = "${dialect}" }`;
      const done = await run(codingModel, { provider });
      expect(saidIn(done)).toEqual(["It is patched."]);
      expect(done.files.get("note.txt")).toBe("made by a patch\n");
      expect(upstream.requests.at(-1)?.body).toContain("Success");
    },
  );

  test.each(dialectsByDay("openai-chat"))(
    "reports the provider's message when %s breaks off",
    async (dialect) => {
      const { opening, content, failure } = wireOf(dialect);
      stage.upstream.enqueue([head(), ...opening, ...content, ...failure]);
      const done = await run(modelIn(dialect));
      expect(done.exitCode).not.toBe(0);
      expect(JSON.stringify(done.events)).toContain("The fixture failed.");
    },
  );

  test("reports a refused key", async () => {
    const done = await run(modelIn("openai-chat"), { key: "sk-svc-v1-nobody" });
    expect(done.exitCode).not.toBe(0);
    expect(JSON.stringify(done.events)).toContain("401");
  });

  test("reports the provider's error message", async () => {
    stage.upstream.enqueue(json(wireOf("openai-chat").errorBody(400), { status: 400 }));
    const done = await run(modelIn("openai-chat"));
    expect(JSON.stringify(done.events)).toContain("The fixture refused with 400.");
  });

  test("asks once whether or not it is told that WebSockets are supported", async () => {
    const { upstream } = stage;
    for (const provider of ["", "supports_websockets = true"]) {
      const before = upstream.requests.length;
      upstream.say({ text: ["Hello."] });
      expect(saidIn(await run(modelIn("openai-chat"), { provider }))).toEqual(["Hello."]);
      expect(upstream.requests.length - before).toBe(1);
    }
  });
});
