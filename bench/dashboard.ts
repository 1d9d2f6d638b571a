import { Database } from "bun:sqlite";
import { spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import type { Page } from "playwright-core";
import { brand } from "../src/platform/kernel/brand.ts";
import { dayMs } from "../src/platform/kernel/clock.ts";
import { Browser } from "../test/end-to-end/api/people-browser.ts";
import { type OwnWindows, startChromium } from "../test/support/chromium.ts";
import { startGateway, type TestGateway } from "../test/support/gateway.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { fillTables } from "./insight-rows.ts";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";
import { median } from "./results.ts";

const root = resolve(import.meta.dirname, "..");
const folder = join(root, "dashboard", "dist");
const days = 90;
const nowMs = Date.now();
const timesAsked = 9;
const viewers = 50;
/** What a page asks for again while it is looked at, in milliseconds. */
const lookEveryMs = 30_000;
const turns = 10;
const turnMs = 5_000;
const inParallel = 4;
/** Keys of the load; each has a window of requests a minute. */
const keysMade = 200;

const { values: options } = parseArgs({
  options: { rows: { type: "string", default: "1000000" } },
});
const rows = Number(options.rows);

/** One figure with its bar. */
interface Figure {
  name: string;
  value: number;
  bar: number;
  unit: "ms" | "%";
}

const tables = [
  "generations",
  "usage_hours",
  "usage_days",
  "usage_key_days",
  "network_hours",
  "network_days",
];

const csvCell = (value: unknown): string =>
  value === null ? "" : `"${String(value).replaceAll('"', '""')}"`;

/** Copies the tables that were filled in SQLite to Postgres. */
async function copyTables(path: string, url: string, directory: string): Promise<void> {
  const source = new Database(path, { readonly: true });
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const table of tables) {
    const file = join(directory, `${table}.csv`);
    const descriptor = openSync(file, "w", 0o644);
    const query = source.query(`select * from ${table}`);
    let lines: string[] = [];
    for (const row of query.iterate()) {
      lines.push(
        Object.values(row as object)
          .map(csvCell)
          .join(","),
      );
      if (lines.length < 5_000) continue;
      writeSync(descriptor, `${lines.join("\n")}\n`);
      lines = [];
    }
    writeSync(descriptor, lines.length === 0 ? "" : `${lines.join("\n")}\n`);
    closeSync(descriptor);
    await client.query(
      `copy ${table} (${query.columnNames.join(", ")}) from '${file}' with (format csv)`,
    );
    rmSync(file);
  }
  await client.query("analyze");
  await client.end();
  source.close();
}

/** Waits until nothing on a page is loading any more. */
async function loaded(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await page.locator("main section").first().waitFor();
  await page.locator('[aria-label="Loading"]').first().waitFor({ state: "detached" });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startNs = Bun.nanoseconds();
  await work();
  return (Bun.nanoseconds() - startNs) / 1e6;
}

async function repeated(work: () => Promise<number>): Promise<number> {
  const figures: number[] = [];
  for (let asked = 0; asked < timesAsked; asked += 1) figures.push(await work());
  return median(figures);
}

/** Opens a screen in a window with an empty cache, and times it until it can be used. */
async function opening(
  chromium: OwnWindows,
  { origin, cookie, path }: { origin: string; cookie: string; path: string },
): Promise<number> {
  const context = await chromium.newContext();
  await context.addCookies([{ name: brand.sessionCookie, value: cookie, url: origin }]);
  const page = await context.newPage();
  const spentMs = await timed(async () => {
    await page.goto(origin + path);
    await loaded(page);
  });
  await context.close();
  return spentMs;
}

const filters = ["status=failed", "status=cut", "model=maker/model-7", "app=nobody", "min_cost=1"];

/** Times the screens, each at the median. */
async function screens(origin: string, cookie: string): Promise<Figure[]> {
  const chromium = await startChromium();
  const open = (path: string): Promise<number> =>
    repeated(() => opening(chromium, { origin, cookie, path }));
  const overview = await open("/dashboard");
  const usage = await repeated(() => switched(chromium, { origin, cookie }));
  const figures: Figure[] = [
    { name: "overview usable, empty cache", value: overview, bar: 1_000, unit: "ms" },
    { name: "usage, from 7 to 90 days", value: usage, bar: 500, unit: "ms" },
  ];
  const context = await chromium.newContext();
  await context.addCookies([{ name: brand.sessionCookie, value: cookie, url: origin }]);
  const page = await context.newPage();
  await page.goto(`${origin}/dashboard/activity`);
  await loaded(page);
  for (const filter of filters) {
    const value = await repeated(async () => {
      const asked = `/api/v1/analytics/generations?${filter}&limit=50`;
      return timed(() => page.evaluate(`fetch("${asked}").then((answer) => answer.json())`));
    });
    figures.push({ name: `activity filter ${filter}`, value, bar: 300, unit: "ms" });
  }
  await chromium.close();
  return figures;
}

/** Times the change from a short range to a long one on the usage screen. */
async function switched(
  chromium: OwnWindows,
  { origin, cookie }: { origin: string; cookie: string },
): Promise<number> {
  const context = await chromium.newContext();
  await context.addCookies([{ name: brand.sessionCookie, value: cookie, url: origin }]);
  const page = await context.newPage();
  await page.goto(`${origin}/dashboard/usage?range=7d`);
  await loaded(page);
  const spentMs = await timed(async () => {
    const answered = page.waitForResponse(
      (response) => response.url().includes("/analytics/usage") && response.ok(),
    );
    await page.getByLabel("Range").selectOption("90d");
    await answered;
    await loaded(page);
  });
  await context.close();
  return spentMs;
}

/** What the overview and activity ask for while they are looked at. */
const looks = [
  "/credits",
  "/analytics/usage?interval=day",
  "/analytics/generations?limit=6",
  "/analytics/generations?limit=50&status=failed",
  "/analytics/generations/histogram",
  "/health",
];

/** Looks as so many people do, spread over the time, until the result is called. */
function look(owner: Browser): () => Promise<void> {
  let running = true;
  const person = async (index: number): Promise<void> => {
    await Bun.sleep((index * lookEveryMs) / viewers);
    while (running) {
      const path = looks[Math.floor(Math.random() * looks.length)] ?? "/credits";
      await (await owner.api("GET", path)).text();
      // Each person asks for all of them in such a time.
      for (let waited = 0; running && waited < lookEveryMs / looks.length; waited += 250)
        await Bun.sleep(250);
    }
  };
  const people = Array.from({ length: viewers }, (_, index) => person(index % 10));
  return async () => {
    running = false;
    await Promise.all(people);
  };
}

/** Requests that are answered in a turn, a second. */
async function inference(gateway: TestGateway, keys: readonly string[]): Promise<number> {
  const endMs = Date.now() + turnMs;
  let answered = 0;
  const client = async (): Promise<void> => {
    while (Date.now() < endMs) {
      const answer = await gateway.post(
        "/chat/completions",
        { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hello" }] },
        { headers: { authorization: `Bearer ${keys[answered % keys.length]}` } },
      );
      if (!answer.ok)
        throw new Error(`inference answered ${answer.status}: ${await answer.text()}`);
      await answer.text();
      answered += 1;
    }
  };
  await Promise.all(Array.from({ length: inParallel }, client));
  return answered / (turnMs / 1_000);
}

/** How much slower inference is beside the viewers, measured in turns; in percent. */
async function beside(
  gateway: TestGateway,
  { owner, keys }: { owner: Browser; keys: readonly string[] },
) {
  const [alone, watched]: [number[], number[]] = [[], []];
  await inference(gateway, keys);
  for (let turn = 0; turn < turns; turn += 1) {
    const measure = async (): Promise<void> => void alone.push(await inference(gateway, keys));
    const measureWatched = async (): Promise<void> => {
      const stop = look(owner);
      watched.push(await inference(gateway, keys));
      await stop();
    };
    const order = turn % 2 === 0 ? [measure, measureWatched] : [measureWatched, measure];
    for (const step of order) await step();
  }
  console.log(
    `requests a second: alone ${alone.map(Math.round).join(" ")}, watched ${watched.map(Math.round).join(" ")}`,
  );
  return (1 - median(watched) / median(alone)) * 100;
}

/** Leases a new gateway, and makes the keys of the load. */
async function claim(
  gateway: TestGateway,
  owner: Browser,
): Promise<{ workspaceId: string; keys: string[] }> {
  const signedUp = await owner.ask("POST", "/api/auth/sign-up", {
    name: "Olga Owner",
    email: "owner@example.com",
    password: "the owner's long password",
    claim_token: await gateway.app.issueClaim(),
  });
  if (!signedUp.ok) throw new Error(await signedUp.text());
  const { workspace } = (await owner.json("GET", "/session")) as { workspace: { id: string } };
  const keys: string[] = [];
  for (let made = 0; made < keysMade; made += 1) {
    const { key } = (await owner.json("POST", "/keys", { name: "bench" })) as { key: string };
    keys.push(key);
  }
  return { workspaceId: workspace.id, keys };
}

/** Measures on one storage engine, with a workspace that has two rows in five. */
async function measure(engine: string, directory: string, url: string | undefined) {
  const path = join(directory, "dashboard.db");
  const settings = {
    sandbox: true,
    storageUrl: url ?? `sqlite:${path}`,
    publicUrl: () => origin,
    dashboard: { folder, buildScript: undefined },
    bootstrap: {
      llmKey: undefined,
      managementKey: undefined,
      creditsNanoUsd: undefined,
      plan: "enterprise" as const,
    },
  };
  let origin = "http://localhost";
  let gateway = await startGateway(settings);
  const owner = new Browser(() => gateway);
  const settle = (): void => {
    origin = `http://localhost:${new URL(gateway.origin).port}`;
    owner.origin = origin;
  };
  settle();
  const { workspaceId, keys } = await claim(gateway, owner);
  await gateway.stop();
  const seeded = url === undefined ? path : join(directory, "seed.db");
  if (url !== undefined) await (await startGateway({ storageUrl: `sqlite:${seeded}` })).stop();
  fillTables(seeded, { rows, workspaceId, nowMs, days });
  if (url !== undefined) await copyTables(seeded, url, directory);
  gateway = await startGateway(settings);
  settle();
  const figures = await screens(origin, owner.cookies.get(brand.sessionCookie) ?? "");
  const year = new Date(nowMs - 365 * dayMs).toISOString();
  for (const group of ["user", "model"]) {
    const value = await repeated(() =>
      timed(async () =>
        (await owner.api("GET", `/analytics/spend?from=${year}&group_by=${group}`)).text(),
      ),
    );
    figures.push({ name: `spend of a year by ${group}`, value, bar: 50, unit: "ms" });
  }
  const slower = await beside(gateway, { owner, keys });
  figures.push({
    name: `inference beside ${viewers} viewers, slower by`,
    value: slower,
    bar: 5,
    unit: "%",
  });
  await gateway.stop();
  console.log(`\n${engine}`);
  console.log(
    alignedTable([
      ["what", "median", "bar"],
      ...figures.map(({ name, value, bar, unit }) => [
        name,
        `${value.toFixed(unit === "%" ? 1 : 0)} ${unit}`,
        `${bar} ${unit}`,
      ]),
    ]),
  );
  if (figures.some(({ value, bar }) => value > bar)) process.exitCode = 1;
}

const directory = mkdtempSync(join(tmpdir(), "switchyard-dashboard-"));
chmodSync(directory, 0o755);
try {
  const built = spawnSync(process.execPath, [join(root, "scripts", "build-dashboard.ts")]);
  if (built.status !== 0) throw new Error(String(built.stderr));
  const { cpu, cores, bun, commit } = describeMachine(directory);
  console.log(`${cpu}, ${cores} cores, Bun ${bun}, ${commit}; ${rows} generation records`);
  await measure("SQLite", directory, undefined);
  const postgres = await startPostgres();
  await measure("Postgres", directory, await postgres.freshDatabase());
  await postgres.stop();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
// The browser of the process is still open; it ends with it.
process.exit();
