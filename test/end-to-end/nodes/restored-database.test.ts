import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { endProcesses, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { numberAt } from "../api/at.ts";
import { getJson, postChat } from "../process/support/ask.ts";
import { untilIdle } from "../process/support/expect-nothing-held.ts";
import { standingBooks } from "../process/support/standing-books.ts";
import { backUp, restore } from "./support/database-copy.ts";
import { give } from "./support/manage.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";
import { pollUntil } from "../../support/poll-until.ts";

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const usdForFew = "0.0001";

/** A gateway notices a backup that is older than its last beat; it beats every second. */
async function untilAllHaveBeaten({ query }: Nodes): Promise<void> {
  const unmoved =
    "select 1 from public.gateway_beats now join backup.gateway_beats old using (node_id, beat)";
  await pollUntil(async () => (await query(unmoved)).length === 0);
}

/** @see `docs/decisions/0095-the-epoch-of-a-database.md` */
describe.skipIf(!hasRedis)(`a database restored beside a running Valkey${redisMissing}`, () => {
  let nodes: Nodes;
  let balance: number;
  beforeEach(async () => {
    nodes = await startNodes({ credits: usdForFew });
    nodes.upstream.script((request) => chatAnswer(request, { usage }));
    // Too little for a request is left when the backup is made; then credits come of which Valkey
    // knows.
    while ((await ask(nodes.gateways[0])) === 200);
    await untilIdle(nodes.gateways[0]);
    balance = numberAt(await getJson(nodes.gateways[0], "/credits"), "balance");
    await backUp(nodes);
    await give(nodes.gateways[0], 1);
    for (const gateway of nodes.gateways) expect(await ask(gateway)).toBe(200);
    await Promise.all(nodes.gateways.map(untilIdle));
    await untilAllHaveBeaten(nodes);
  }, 600_000);
  afterEach(async () => {
    await endProcesses();
    await nodes.stop();
  });

  const ask = async (gateway: GatewayProcess): Promise<number> => {
    const response = await postChat(gateway, { max_tokens: 10 });
    await response.text();
    return response.status;
  };

  async function expectNothingIsLeft(gateways: readonly GatewayProcess[]): Promise<void> {
    const asked = nodes.upstream.requests.length;
    for (const gateway of gateways) {
      expect(await ask(gateway)).toBe(402);
      expect(numberAt(await getJson(gateway, "/credits"), "balance")).toBeWithin(0, balance + 1e-9);
    }
    expect(nodes.upstream.requests.length).toBe(asked);
    expect((await standingBooks({ options: {}, query: nodes.query })).balanceNano).toBeLessThan(
      100_000n,
    );
  }

  test("under running gateways, credits granted after the backup cannot be spent, nor balances go negative", async () => {
    await restore(nodes);
    // Before either has noticed, what is asked at most costs the operator.
    await Promise.all(Array.from({ length: 20 }, (_, index) => ask(nodes.gateways[index % 2]!)));
    for (const gateway of nodes.gateways) await gateway.stderrHas("the database has another epoch");
    await Promise.all(nodes.gateways.map(untilIdle));
    await expectNothingIsLeft(nodes.gateways);
    await give(nodes.gateways[1], 1);
    for (const gateway of nodes.gateways) expect(await ask(gateway)).toBe(200);
  }, 600_000);

  test("while no gateway runs, starting gateways read the database again", async () => {
    await Promise.all(nodes.gateways.map((gateway) => gateway.kill9()));
    await restore(nodes);
    const started = [await nodes.start(), await nodes.start()];
    await expectNothingIsLeft(started);
  }, 600_000);
});
