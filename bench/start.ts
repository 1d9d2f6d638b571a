import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fillTables } from "./insight-rows.ts";
import { describeMachine } from "./machine.ts";
import { type Child, Children, waitForLine } from "./process/children.ts";
import { median } from "./results.ts";

/**
 * Measures a start on an empty database, on one with a million generation records, and on the same
 * one whose last gateway was killed with 10,000 commits that were not folded into the sums yet. Fails
 * where a start takes longer than 2 seconds.
 */
const barMs = 2_000;
const rounds = 5;
const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    behind: { type: "string", default: "10000" },
  },
});
const [rows, behind] = [Number(options.rows), Number(options.behind)];
const root = fileURLToPath(new URL("..", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "switchyard-start-"));
const databasePath = join(directory, "switchyard.db");
const children = new Children(directory);
const key = `sk-svc-v1-${"b".repeat(48)}`;

async function start(): Promise<{ child: Child; port: number; readyMs: number }> {
  const child = children.spawn({
    name: "gateway",
    command: [process.execPath, "src/main.ts"],
    directory: root,
    environment: {
      HOST: "127.0.0.1",
      PORT: "0",
      SWITCHYARD_DATA_DIR: directory,
      SWITCHYARD_BOOTSTRAP_LLM_KEY: key,
      SWITCHYARD_BOOTSTRAP_CREDITS: "100000",
    },
  });
  const pattern = /^switchyard ready http:\/\/\S+:(\d+)/;
  const [, port] = await waitForLine(child, { pattern, timeoutMs: 60_000 });
  return { child, port: Number(port), readyMs: performance.now() - child.startedAtMs };
}

async function measure(name: string, prepare: () => void): Promise<void> {
  const figures: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    prepare();
    const { child, readyMs } = await start();
    figures.push(readyMs);
    await child.stop();
  }
  const middle = median(figures);
  console.log(
    `${name.padEnd(64)} ready after ${Math.round(middle)} ms (${figures.map(Math.round).join(", ")})`,
  );
  if (middle > barMs) process.exitCode = 1;
}

/** The sums of one settled request, as its commit carries them until they are folded. */
async function unfoldedCommit(): Promise<{ format: string; growths: string }> {
  const { child, port } = await start();
  using database = new Database(databasePath, { readonly: true });
  const rows = database.query<{ format: string; growths: string }, []>(
    "select format, growths from commit_growths order by length(growths) desc limit 1",
  );
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/chat:free",
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  if (!response.ok) throw new Error(`the sandbox answered ${response.status}`);
  await response.text();
  const endMs = performance.now() + 5_000;
  let row = rows.get();
  for (; row === null && performance.now() < endMs; row = rows.get()) await Bun.sleep(1);
  await child.stop();
  if (row === null) throw new Error("no commit was seen before its fold");
  return row;
}

function fallBehind({ format, growths }: { format: string; growths: string }): void {
  using database = new Database(databasePath);
  const insert = database.prepare("insert into commit_growths (format, growths) values (?, ?)");
  database.transaction(() => {
    for (let count = 0; count < behind; count += 1) insert.run(format, growths);
  })();
}

async function main(): Promise<void> {
  const { cpu, cores, bun, commit } = describeMachine(directory);
  console.log(`${cpu}, ${cores} cores, Bun ${bun}, ${commit}, SQLite`);
  const first = await start();
  await first.child.stop();
  await measure("an empty database", () => undefined);
  fillTables(databasePath, { rows, workspaceId: "ws_bench", nowMs: Date.now(), days: 90 });
  const left = await unfoldedCommit();
  await measure(`${rows} records`, () => undefined);
  await measure(
    `${rows} records, a fold behind by ${behind} commits of ${left.growths.length} bytes`,
    () => fallBehind(left),
  );
}

try {
  await main();
} finally {
  await children.stopAll();
  rmSync(directory, { recursive: true, force: true });
}
