import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { clientStage, modelIn } from "../clients/support/client-stage.ts";
import { isNightly } from "../../support/nightly.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { dialectsByDay } from "./support/dialects-by-day.ts";
import { missingAgent, runAgent, type AgentRun } from "./support/agent-run.ts";

const missing = missingAgent("gemini");

/** What a headless start needs: the kind of its key; and nothing but the task. */
const settings = {
  security: { auth: { selectedType: "gemini-api-key" } },
  general: { disableAutoUpdate: true, disableUpdateNag: true },
  privacy: { usageStatisticsEnabled: false },
};

describe.skipIf(missing !== undefined)(
  `Gemini CLI${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const stage = clientStage();

    const run = (model: string, key = testLlmKey): Promise<AgentRun> =>
      runAgent({
        name: "gemini",
        parameters: [
          ...["-p", "Write a note.", "-m", model],
          ...["--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json"],
        ],
        variables: {
          GOOGLE_GEMINI_BASE_URL: stage.gateway.origin,
          GEMINI_API_KEY: key,
          // Otherwise it starts itself again with a larger heap, which its first start is for.
          GEMINI_CLI_NO_RELAUNCH: "true",
        },
        prepare: (home) =>
          Bun.write(join(home, ".gemini", "settings.json"), JSON.stringify(settings)),
      });

    // What it prints does not stand in the call.
    const command = "echo made by a tool > note.txt && tr a-z A-Z < note.txt";
    const call = {
      id: "call_note",
      name: "run_shell_command",
      arguments: { command, description: "Write" },
    };
    const reasoning = { text: "A note, then.", signature: "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=" };

    test.each(dialectsByDay("openai-responses"))("completes a task over %s", async (dialect) => {
      const { upstream } = stage;
      const before = upstream.requests.length;
      upstream.say(
        { reasoning, text: ["I will write it."], calls: [call] },
        { text: ["It is ", "written."] },
      );
      const done = await run(modelIn(dialect));
      expect([done.exitCode, done.exitCode === 0 ? "" : done.errorOutput]).toEqual([0, ""]);
      expect(done.files.get("note.txt")).toBe("made by a tool\n");
      const bodies = upstream.requests.slice(before).map(({ body }) => body);
      expect(bodies).toHaveLength(2);
      expect(bodies[1]).toContain("MADE BY A TOOL");
      // Chat upstreams sign nothing.
      if (dialect !== "openai-chat") expect(bodies[1]).toContain(reasoning.signature);
      expect(saidIn(done)).toBe("I will write it.It is written.");
      expect(done.events.at(-1)).toMatchObject({ type: "result", status: "success" });
    });

    test("ends at once when money is gone, and nightly when its key is refused", async () => {
      const exhausted = await createKey(stage.gateway, { limit: 0 });
      const refusals = [
        [exhausted, '"insufficient_balance"'],
        ["sk-svc-v1-nobody", '"invalid_api_key"'],
      ] as const;
      for (const [key, code] of isNightly ? refusals : refusals.slice(0, 1)) {
        const before = stage.upstream.requests.length;
        const done = await run(modelIn("openai-chat"), key);
        expect(done.exitCode).not.toBe(0);
        const refused = stage.gateway.logLines.filter((line) => line.includes(code));
        expect([code, refused.length, stage.upstream.requests.length - before]).toEqual([
          code,
          1,
          0,
        ]);
      }
    });
  },
);

const saidIn = ({ events }: AgentRun): string =>
  events
    .filter(({ type, role }) => type === "message" && role === "assistant")
    .map(({ content }) => String(content))
    .join("");
