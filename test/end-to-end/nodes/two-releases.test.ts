import { afterEach, beforeEach, describe, expect, test } from "bun:test";
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
  let seen: SeenCharge[];
  beforeEach(async () => {
    nodes = await startNodes();
    nodes.upstream.script((request) => chatAnswer(request, { usage }));
    seen = [];
  }, 600_000);
  afterEach(async () => {
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

  test("the old release serves and restarts beside the next one, and is refused by the one after", async () => {
    const [serving, replaced] = nodes.gateways;
    const asked = askAll(serving, replaced);
    const job = await nodes.run(program(1, "migrate.ts"));
    expect([job.exitCode, job.stdout]).toEqual([0, expect.stringMatching(isMigrated)]);
    await asked;
    const next = await nodes.start(program(1, "main.ts", "--no-migrate"));
    await askAll(serving, replaced, next);
    expect(await replaced.terminate()).toBe(0);
    const again = await nodes.start(thisRelease);
    await askAll(serving, again, next);
    await expectExactBooks(serving, again, next);

    const later = await nodes.run(program(2, "migrate.ts"));
    expect([later.exitCode, later.stdout]).toEqual([0, expect.stringMatching(isMigrated)]);
    await askAll(next);
    const refused = await nodes.run(thisRelease);
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringContaining("the database was written by a newer release (9999-01-02-more"),
    ]);
    const nextAgain = await nodes.start(nextRelease);
    await askAll(next, nextAgain);
    await expectExactBooks(next, nextAgain);
  }, 600_000);

  test("the next release is refused without permission to migrate, and serves beside the others with it", async () => {
    const [one, other] = nodes.gateways;
    const refused = await nodes.run(program(1, "main.ts", "--no-migrate"));
    expect([refused.exitCode, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^switchyard cannot start: the database lacks 1 migration of this release, and this process may not run them/,
      ),
    ]);
    await askAll(one, other);
    const next = await nodes.start(nextRelease);
    await askAll(one, other, next);
    await expectExactBooks(one, other, next);
    const [growth] = await nodes.query(
      "select count(*) as count from transfers where added_1 = 'none'",
    );
    const [all] = await nodes.query("select count(*) as count from transfers");
    expect(growth).toEqual(all);
  }, 600_000);
});
