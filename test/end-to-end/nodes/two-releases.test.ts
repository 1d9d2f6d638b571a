import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { programPath } from "../../support/program.ts";
import { endProcesses, type GatewayProcess } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { postChat } from "../process/support/ask.ts";
import { untilIdle } from "../process/support/expect-nothing-held.ts";
import { chargeIn, type SeenCharge } from "../process/support/seen-charge.ts";
import { expectToStand, standingBooks } from "../process/support/standing-books.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";

const root = join(import.meta.dir, "..", "..", "..");
/** A program of the release that is so many later. */
const program = (releasesAhead: number, file: string, ...options: string[]): string[] => [
  "env",
  `TEST_RELEASES_AHEAD=${releasesAhead}`,
  process.execPath,
  "--preload",
  join(root, "test", "support", "later-release.ts"),
  join(root, "src", file),
  ...options,
];
const thisRelease = [process.execPath, programPath("main")];
const nextRelease = program(1, "main.ts");
const usage = { prompt_tokens: 25, completion_tokens: 100, total_tokens: 125 };
const isMigrated = /^the database has the \d+ migrations? of this release\n$/;

describe.skipIf(!hasRedis)(`gateways of two releases on one database${redisMissing}`, () => {
  let nodes: Nodes;
  /** A gateway of the next release, which both tests ask. */
  let next: GatewayProcess;
  const seen: SeenCharge[] = [];
  beforeAll(async () => {
    nodes = await startNodes();
    nodes.upstream.script((request) => chatAnswer(request, { usage }));
  }, 600_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  /** Asks each gateway four times, streamed and whole; all are served. */
  async function askAll(...gateways: GatewayProcess[]): Promise<void> {
    for (let turn = 0; turn < 4; turn += 1) {
      const answers = gateways.map(async (gateway) => {
        const response = await postChat(gateway, { stream: turn % 2 === 0 });
        const text = await response.text();
        expect([response.status, chargeIn(text).length, text]).toEqual([200, 1, text]);
        seen.push(...chargeIn(text));
      });
      await Promise.all(answers);
    }
  }

  /** Every charge that was shown stands, and no other. */
  async function expectExactBooks(...gateways: GatewayProcess[]): Promise<void> {
    await Promise.all(gateways.map(untilIdle));
    const books = await standingBooks({ options: {}, query: nodes.query });
    expectToStand(seen, books);
    expect(books.charges.size).toBe(seen.length);
  }

  /** Every row has the column of a release, by its default where an older one wrote it. */
  async function expectGrown(release: 1 | 2): Promise<void> {
    const table = release === 1 ? "transfers" : "generations";
    const [rows] = await nodes.query(
      `select count(*) as total, count(*) filter (where added_${release} = 'none') as grown from ${table}`,
    );
    expect(Number(rows?.["total"])).toBeGreaterThan(0);
    expect(rows?.["grown"]).toEqual(rows?.["total"]);
  }

  test("the next release is refused without permission to migrate, and the old one serves and restarts beside it", async () => {
    const [serving, replaced] = nodes.gateways;
    const refused = await nodes.run(program(1, "main.ts", "--no-migrate"));
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^switchyard cannot start: the database lacks 1 migration of this release, and this process may not run them/,
      ),
    ]);
    const asked = askAll(serving, replaced);
    const job = await nodes.run(program(1, "migrate.ts"));
    expect([job.exitCode, job.stdout]).toEqual([0, expect.stringMatching(isMigrated)]);
    await asked;
    next = await nodes.start(program(1, "main.ts", "--no-migrate"));
    await askAll(serving, replaced, next);
    expect(await replaced.terminate()).toBe(0);
    const again = await nodes.start(thisRelease);
    await askAll(serving, again, next);
    await expectExactBooks(serving, again, next);
    await expectGrown(1);
    await Promise.all([serving, again].map((gateway) => gateway.terminate()));
  }, 600_000);

  test("the release after that migrates as it starts, and this one is refused then", async () => {
    const later = await nodes.start(program(2, "main.ts"));
    await askAll(next, later);
    const refused = await nodes.run(thisRelease);
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringContaining("the database was written by a newer release (9999-01-02-more"),
    ]);
    const nextAgain = await nodes.start(nextRelease);
    await askAll(next, nextAgain, later);
    await expectExactBooks(next, nextAgain, later);
    await expectGrown(2);
  }, 600_000);
});
