import { afterAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import type {
  ScriptedAnswer,
  ScriptedCall,
} from "../../support/scripted-upstream/scripted-answer.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { agentFolder, missingAgent, runAgent, type AgentRun } from "./support/agent-run.ts";
import { startVendorPairs, type PairName, type VendorPairs } from "./support/vendor-pairs.ts";

const missing = missingAgent("claude");

/** A red dot, as PNG. */
const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);

/** The models of the conversation, a run each: five switches, and two runs that go on with one. */
const models: readonly PairName[] = [
  "claude",
  "claude",
  "deepseek",
  "gemini",
  "gpt",
  "gpt",
  "mistral",
  "kimi",
];
/** The run before which the gateway is restarted; its model answered the run before. */
const restartedRun = 5;
/** The run in which an answer is slow. */
const slowRun = 3;
/** The run that looks at a picture, which all later runs have in their history. */
const pictureRun = 0;
const turnsPerRun = 5;

/** Returns the text with which a run ends. */
const textOf = (run: number): string => `Run ${run} is done.`;

/** Returns the answers of a run: calls of tools, the first of which is for the picture; then its text. */
function answersOf(run: number, work: string): ScriptedAnswer[] {
  const calls: Omit<ScriptedCall, "id">[] = [
    run === pictureRun
      ? { name: "Read", arguments: { file_path: join(work, "dot.png") } }
      : bash("ls -A"),
    bash(`echo run ${run} > note-${run}.txt && cat note-${run}.txt`),
    bash("ls | sort"),
    bash("seq 1 200"),
  ];
  const reasoningAt = (turn: number) => ({
    text: `Step ${turn}.`,
    signature: `sealed-${run}-${turn}`,
  });
  return [
    ...calls.map((call, turn) => ({
      reasoning: reasoningAt(turn),
      calls: [{ ...call, id: `call_${run}_${turn}` }],
    })),
    { reasoning: reasoningAt(calls.length), text: [`Run ${run} `, "is done."] },
  ];
}

const bash = (command: string): Omit<ScriptedCall, "id"> => ({
  name: "Bash",
  arguments: { command, description: "Work" },
});

describe.skipIf(missing !== undefined)(
  `a long conversation of Claude Code${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const folder = agentFolder();
    const data = join(folder, "data");
    let pairs: VendorPairs | undefined;
    afterAll(async () => {
      await endProcesses();
      pairs?.upstream.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const start = (yaml: string): Promise<GatewayProcess> =>
      startProcess({ yaml, dataDirectory: data, environment: bootstrapVariables });

    const run = (gateway: GatewayProcess, index: number): Promise<AgentRun> =>
      runAgent({
        name: "claude",
        folder,
        parameters: [
          ...["-p", `Do run ${index}.`, "--model", `pair/${models[index]}`],
          ...["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read"],
          ...(index > 0 ? ["--continue"] : []),
        ],
        variables: {
          ANTHROPIC_BASE_URL: gateway.url,
          ANTHROPIC_AUTH_TOKEN: testLlmKey,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          CLAUDE_CODE_MAX_RETRIES: "0",
          DISABLE_AUTOUPDATER: "1",
          DISABLE_ERROR_REPORTING: "1",
          DISABLE_TELEMETRY: "1",
        },
      });

    test("is finished by six vendors at the price of one provider each", async () => {
      pairs = await startVendorPairs();
      const work = join(folder, "work");
      await Bun.write(join(work, "dot.png"), picture);
      let gateway = await start(pairs.yaml);
      for (const index of models.keys()) {
        if (index === restartedRun) {
          expect(await gateway.terminate()).toBe(0);
          gateway = await start(pairs.yaml);
        }
        const answers = answersOf(index, work);
        pairs.say(answers, index === slowRun ? answers[1] : undefined);
        const { events } = await run(gateway, index);
        expect(pairs.upstream.refusals.map(({ rules }) => rules)).toEqual([]);
        expect(events.at(-1)).toMatchObject({ is_error: false, result: textOf(index) });
      }
      const { served } = pairs;
      expect(served).toHaveLength(models.length * turnsPerRun);
      const places = new Set(served.map(({ model, seat }) => `${model} ${seat}`));
      expect(places.size).toBe(new Set(models).size);
      const spent = await spentAt(gateway);
      expect(spent / pairs.idealCost()).toBeWithin(0.95, 1.05);
    }, 240_000);
  },
);

async function spentAt(gateway: GatewayProcess): Promise<number> {
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const answer = await fetch(`${gateway.url}/api/v1/key`, { headers });
  const { data } = (await answer.json()) as { data: { usage: number } };
  return data.usage;
}
