import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sampleOptions, type SampleSchema } from "../../../../test/support/sample-commits.ts";
import { openStorage } from "../open-storage.ts";
import { StorageInUseError } from "../storage-error.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-kill-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const path = join(root, "test.db");
const child = join(import.meta.dir, "../../../../test/support/commit-until-killed.ts");
const open = () =>
  openStorage<SampleSchema>({ ...sampleOptions, url: `sqlite:${path}`, lockTimeoutMs: 0 });

/** Runs a committing process, kills it after so many lines, and returns all that it printed. */
async function printedUntilKilled(
  prefix: string,
  { killAfterLines, whileRunning }: { killAfterLines: number; whileRunning?: () => Promise<void> },
) {
  const process = Bun.spawn([globalThis.process.execPath, child, path, prefix], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const decoder = new TextDecoder();
  let text = "";
  let killed = false;
  for await (const chunk of process.stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (killed || text.split("\n").length <= killAfterLines) continue;
    await whileRunning?.();
    process.kill("SIGKILL");
    killed = true;
  }
  await process.exited;
  const lines = text
    .split("\n")
    .slice(1, -1)
    .map((line) => line.split(" "));
  return lines.map(([id = "", amount]) => ({ id, amount: Number(amount) }));
}

test("after kill -9, every confirmed charge is stored once and the sums match", async () => {
  const shown: { id: string; amount: number }[] = [];
  for (let round = 0; round < 20; round++) {
    shown.push(
      ...(await printedUntilKilled(`round-${round}`, { killAfterLines: 2 + ((round * 37) % 180) })),
    );
    const storage = await open();
    const entries = await storage.database.selectFrom("entries").selectAll().execute();
    const amounts = new Map(entries.map(({ id, amount }) => [id, amount]));
    expect(amounts.size).toBe(entries.length);
    expect(shown.filter(({ id, amount }) => amounts.get(id) !== amount)).toEqual([]);
    for (const total of await storage.database.selectFrom("totals").selectAll().execute()) {
      const own = entries.filter(({ account }) => account === total.account);
      expect(total.entries).toBe(own.length);
      expect(total.amount).toBe(own.reduce((sum, { amount }) => sum + Number(amount), 0));
    }
    await storage.close();
  }
  expect(shown.length).toBeGreaterThan(1_000);
}, 240_000);

test("a running process locks out others, and kill -9 releases the lock", async () => {
  await printedUntilKilled("owner", {
    killAfterLines: 10,
    whileRunning: async () => {
      expect(await open().catch((error: unknown) => error)).toBeInstanceOf(StorageInUseError);
    },
  });
  const storage = await open();
  expect(await storage.isHealthy()).toBe(true);
  await storage.close();
});
