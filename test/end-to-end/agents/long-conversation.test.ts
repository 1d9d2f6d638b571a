import { afterAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { isNightly } from "../../support/nightly.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import type { ScriptedAnswer } from "../../support/scripted-upstream/scripted-answer.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { agentFolder, missingAgent } from "./support/agent-run.ts";
import { claudeCode, codex, type Talker } from "./support/talkers.ts";
import { startVendorPairs, type PairName, type VendorPairs } from "./support/vendor-pairs.ts";

/** A red dot, as PNG. */
const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);

/** What a conversation meets in its runs, the last of which begins from a summary. */
interface Plan {
  /** The models, a run each. */
  models: readonly PairName[];
  /** The run before which the gateway is restarted; its model answered the run before. */
  restartedRun: number;
  /** The run in which an answer is slow. */
  slowRun: number;
}

/** Five switches, and two runs that go on with one model. */
const allVendors: Plan = {
  models: ["claude", "claude", "deepseek", "gemini", "gpt", "gpt", "mistral", "kimi"],
  restartedRun: 5,
  slowRun: 3,
};
/** By day an agent meets three vendors, first its own; no vendor is met by both. */
const plans: readonly { talker: Talker; plan: Plan }[] = [
  {
    talker: claudeCode,
    plan: { models: ["claude", "claude", "gemini", "mistral"], restartedRun: 1, slowRun: 2 },
  },
  {
    talker: codex,
    plan: { models: ["gpt", "gpt", "deepseek", "kimi"], restartedRun: 1, slowRun: 2 },
  },
];
/** The run that looks at a picture, which the runs up to the summary have in their history. */
const pictureRun = 0;
const turnsPerRun = 5;

/** Returns the text with which a run ends. */
const textOf = (run: number): string => `Run ${run} is done.`;

const summary: ScriptedAnswer = { text: ["<summary>The runs before are done.</summary>"] };

/** Returns the answers of a run: calls of tools, the first of which is for the picture; then its text. */
function answersOf(run: number, { look, command }: Talker, work: string): ScriptedAnswer[] {
  const calls = [
    run === pictureRun ? look(join(work, "dot.png")) : command("ls -A"),
    command(`echo run ${run} > note-${run}.txt && cat note-${run}.txt`),
    command("ls | sort"),
    command("seq 1 600"),
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

describe.each(plans)("a long conversation of $talker.title", ({ talker, plan }) => {
  const { models, restartedRun, slowRun } = isNightly ? allVendors : plan;
  const compactedRun = models.length - 1;
  const missing = missingAgent(talker.name);
  const folder = agentFolder();
  const data = join(folder, "data");
  const work = join(folder, "work");
  let pairs: VendorPairs | undefined;
  afterAll(async () => {
    await endProcesses();
    pairs?.upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = (yaml: string): Promise<GatewayProcess> =>
    startProcess({ yaml, dataDirectory: data, environment: bootstrapVariables });

  test.skipIf(missing !== undefined)(
    `is finished by ${new Set(models).size} vendors at the price of one provider each${missing ? ` (missing: ${missing})` : ""}`,
    async () => {
      pairs = await startVendorPairs();
      const { upstream, served } = pairs;
      await Bun.write(join(work, "dot.png"), picture);
      let gateway = await start(pairs.yaml);
      const run = async (index: number, compacts: boolean): Promise<unknown> => {
        const model = `pair/${models[index]}`;
        const prompt = `Do run ${index}.`;
        const origin = gateway.url;
        const continues = index > 0;
        const done = await talker.run({ origin, folder, prompt, model, continues, compacts });
        expect(upstream.refusals.map(({ rules }) => rules)).toEqual([]);
        return talker.resultOf(done);
      };
      for (const index of models.keys()) {
        if (index === restartedRun) {
          expect(await gateway.terminate()).toBe(0);
          gateway = await start(pairs.yaml);
        }
        const compacts = index === compactedRun;
        if (compacts) pairs.compact(summary);
        if (compacts && talker.compactsApart) await run(index, true);
        const answers = answersOf(index, talker, work);
        pairs.say(answers, index === slowRun ? answers[1] : undefined);
        expect(await run(index, compacts && !talker.compactsApart)).toBe(textOf(index));
      }
      expect(served).toHaveLength(models.length * turnsPerRun + 1);
      const places = new Set(served.map(({ model, seat }) => `${model} ${seat}`));
      expect(places.size).toBe(new Set(models).size);
      const spent = await spentAt(gateway);
      expect(spent / pairs.idealCost()).toBeWithin(0.95, 1.05);
    },
    600_000,
  );
});

async function spentAt(gateway: GatewayProcess): Promise<number> {
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const answer = await fetch(`${gateway.url}/api/v1/key`, { headers });
  const { data } = (await answer.json()) as { data: { usage: number } };
  return data.usage;
}
