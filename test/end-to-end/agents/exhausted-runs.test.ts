import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { textAt } from "../api/at.ts";
import { clientStage, modelIn } from "../clients/support/client-stage.ts";
import { agentFolder, missingAgent, runAgent, type AgentRun } from "./support/agent-run.ts";

/** What each run begins with: enough for the prompts of agents, which are long. */
const limit = 0.5;

/** How each agent starts a task with the key of a run, and goes on with it. */
const agents = {
  claude: {
    model: modelIn("anthropic-messages"),
    tool: "Bash",
    argumentsOf: (command: string) => ({ command, description: "Write" }),
    parameters: (prompt: string, isMore: boolean) => [
      ...["-p", prompt, "--model", modelIn("anthropic-messages")],
      ...["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"],
      ...(isMore ? ["--continue"] : []),
    ],
    variables: (origin: string, key: string): Record<string, string> => ({
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_AUTH_TOKEN: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CODE_MAX_RETRIES: "5",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_ERROR_REPORTING: "1",
      DISABLE_TELEMETRY: "1",
    }),
  },
  codex: {
    model: modelIn("openai-responses"),
    tool: "exec_command",
    argumentsOf: (command: string) => ({ cmd: command }),
    parameters: (prompt: string, isMore: boolean) => [
      "exec",
      ...(isMore ? ["resume", "--last"] : []),
      "--skip-git-repo-check",
      "--json",
      "--dangerously-bypass-approvals-and-sandbox",
      prompt,
    ],
    variables: (_: string, key: string): Record<string, string> => ({ GATEWAY_KEY: key }),
  },
} as const;

const missing = missingAgent("claude") ?? missingAgent("codex");

describe.skipIf(missing !== undefined)(
  `agents whose run has nothing left${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const stage = clientStage();
    const ask = async (method: string, path: string, body: object): Promise<unknown> => {
      const answer = await fetch(`${stage.gateway.origin}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${testLlmKey}` },
        body: JSON.stringify(body),
      });
      expect(answer.status).toBe(200);
      return answer.json();
    };

    test.each(["claude", "codex"] as const)(
      "%s stops, and goes on after money came",
      async (name) => {
        const agent = agents[name];
        const { upstream, gateway } = stage;
        const made = await ask("POST", "/runs", { name: "nightly", limit });
        const path = `/runs/${textAt(made, "data.id")}`;
        const folder = agentFolder();
        const run = (prompt: string, isMore: boolean): Promise<AgentRun> =>
          runAgent({
            name,
            folder,
            parameters: agent.parameters(prompt, isMore),
            variables: agent.variables(gateway.origin, textAt(made, "key")),
            async prepare(home) {
              await Bun.write(
                join(home, ".codex", "config.toml"),
                `model = "${agent.model}"
              model_provider = "gateway"
              check_for_update_on_startup = false
              analytics.enabled = false
              [model_providers.gateway]
              name = "gateway"
              base_url = "${gateway.origin}/v1"
              env_key = "GATEWAY_KEY"
              wire_api = "responses"`,
              );
            },
          });
        try {
          // The tool that the agent runs takes what the run has left, all but a rest.
          const change = `curl -s -X PATCH ${gateway.origin}/v1${path} -H "authorization: Bearer ${testLlmKey}" -d '{"limit":0.00002}'`;
          const command = `${change} > /dev/null; echo made by a tool > note.txt && cat note.txt`;
          upstream.say(
            {
              text: ["I will write it."],
              calls: [{ id: "call_note", name: agent.tool, arguments: agent.argumentsOf(command) }],
            },
            { text: ["It is ", "written."] },
          );
          const before = upstream.requests.length;
          const stopped = await run("Write a note.", false);
          expect(stopped.exitCode).not.toBe(0);
          expect(upstream.requests.length - before).toBe(1);
          const shown = `${JSON.stringify(stopped.events)} ${stopped.errorOutput}`;
          expect(shown).toContain(`/resume/${textAt(made, "data.id")}`);
          expect(stopped.files.get("note.txt")).toBe("made by a tool\n");
          const refusals = gateway.logLines.filter((line) => line.includes('"run_exhausted"'));
          expect(refusals.length).toBeGreaterThan(0);
          await ask("PATCH", path, { limit });
          const done = await run("Go on.", true);
          expect(done.exitCode).toBe(0);
          const bodies = upstream.requests.slice(before).map(({ body }) => body);
          expect(bodies).toHaveLength(2);
          expect(bodies[1]).toContain("made by a tool");
          expect(JSON.stringify(done.events)).toContain("It is written.");
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      },
      240_000,
    );
  },
);
