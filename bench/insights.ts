import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { dayMs } from "../src/platform/kernel/clock.ts";
import {
  acme,
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../test/support/gateway.ts";
import { countRows, fillTables, spread } from "./insight-rows.ts";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";
import { median } from "./results.ts";

/**
 * What an answer may take at the median, in milliseconds: those that look at many records, and all
 * others.
 */
const searchBarMs = 300;
const barMs = 50;
const barOf = (path: string): number =>
  /^\/analytics\/(generations[?/].*(=|histogram)|errors|activity|usage)/.test(path)
    ? searchBarMs
    : barMs;
const timesAsked = 25;
const days = 90;
const nowMs = new Date().setUTCHours(12, 0, 0, 0);
const ago = (count: number): string => new Date(nowMs - count * dayMs).toISOString();

const { values: options } = parseArgs({
  options: { rows: { type: "string", default: "10000000" } },
});
const rows = Number(options.rows);

const pricing = { prompt: "0.5", completion: "1.5" };
const models = Array.from({ length: spread.models }, (_, index) => ({
  id: `maker/model-${index}`,
  pricing,
}));
const providers = [
  acme("http://127.0.0.1:9"),
  ...Array.from({ length: spread.providers }, (_, index) =>
    provider({
      id: `provider-${index}`,
      base_url: "http://127.0.0.1:9",
      dialect: "openai-chat",
      api_key: "k",
      models,
    }),
  ),
];

/**
 * Everything that is read of the tables, from the smallest question to the largest that is
 * answered.
 */
const paths = (ids: { oldest: string; newest: string }): string[] => [
  "/analytics/usage",
  `/analytics/usage?from=${ago(30)}&group_by=model`,
  `/analytics/usage?from=${ago(60)}&group_by=model`,
  `/analytics/usage?from=${ago(10)}&group_by=model,key,provider`,
  `/analytics/usage?from=${ago(365)}`,
  `/analytics/usage?interval=hour&from=${ago(1)}&group_by=key`,
  `/analytics/usage?interval=hour&from=${ago(3)}`,
  "/analytics/activity",
  `/analytics/activity?from=${ago(45)}`,
  "/analytics/spend",
  `/analytics/spend?from=${ago(30)}&group_by=key`,
  `/analytics/spend?from=${ago(365)}&group_by=user&format=csv`,
  "/analytics/generations",
  "/analytics/generations?limit=1000",
  `/analytics/generations?after=${ids.oldest}`,
  `/analytics/generations?from=${ago(60)}&to=${ago(59)}&limit=1000`,
  `/analytics/usage?from=${ago(90)}&group_by=model`,
  "/analytics/generations?model=maker/model-7",
  "/analytics/generations?key_id=key_3&model=maker/model-9&status=completed",
  "/analytics/generations?provider=provider-none",
  "/analytics/generations?status=cut,failed",
  "/analytics/generations?error=upstream_error",
  "/analytics/generations?app=nobody",
  "/analytics/generations?min_cost=1",
  `/analytics/generations/histogram?from=${ago(90)}&key_id=key_3`,
  `/analytics/generations/histogram?from=${ago(1)}`,
  `/analytics/generations/histogram?from=${ago(90)}&app=nobody`,
  `/analytics/errors?from=${ago(90)}`,
  `/analytics/latency?from=${ago(89)}`,
  `/generation/${ids.newest}/explain`,
  "/analytics/network",
  "/health",
  "/models/maker/model-7/uptime",
  "/models?sort=usage",
];

interface Answer {
  path: string;
  status: number;
  kilobytes: number;
  medianMs: number;
  worstMs: number;
}

/** The others are asked with the test's LLM key. */
const administers = (path: string): boolean => !/^\/(models|generation)/.test(path);

async function measure(gateway: TestGateway, path: string): Promise<Answer> {
  const figures: number[] = [];
  let [status, bytes] = [0, 0];
  for (let asked = 0; asked <= timesAsked; asked += 1) {
    const startNs = Bun.nanoseconds();
    const response = await gateway.get(
      path,
      administers(path) ? { authorization: `Bearer ${testManagementKey}` } : {},
    );
    bytes = (await response.arrayBuffer()).byteLength;
    ({ status } = response);
    // The first one warms the pages and the statement up, as any other request before it would
    // have.
    if (asked > 0) figures.push((Bun.nanoseconds() - startNs) / 1_000_000);
  }
  return {
    path,
    status,
    kilobytes: Math.round(bytes / 1024),
    medianMs: median(figures),
    worstMs: Math.max(...figures),
  };
}

const tables = [
  "generations",
  "usage_hours",
  "usage_days",
  "usage_key_days",
  "network_hours",
  "network_days",
];

function report(answers: readonly Answer[]): void {
  console.log(
    alignedTable([
      ["route", "status", "KB", "median ms", "worst ms"],
      ...answers.map(({ path, status, kilobytes, medianMs, worstMs }) => [
        path.replaceAll(/(\d{4}-\d\d-\d\d)T[\d:.]+Z/g, "$1"),
        String(status),
        String(kilobytes),
        medianMs.toFixed(1),
        worstMs.toFixed(1),
      ]),
    ]),
  );
  const missed = answers.filter(
    ({ path, status, medianMs }) => status !== 200 || medianMs > barOf(path),
  );
  if (missed.length === 0) return;
  console.log(`too slow, or no answer: ${missed.map(({ path }) => path).join(", ")}`);
  process.exitCode = 1;
}

async function main(directory: string): Promise<void> {
  const path = join(directory, "many.db");
  const settings = { providers, storageUrl: `sqlite:${path}` };
  const first = await startGateway(settings);
  const workspaceId = first.app.ledger.book.workspaceIds()[0] ?? "";
  await first.stop();
  const { cpu, cores, bun, commit } = describeMachine(directory);
  console.log(`${cpu}, ${cores} cores, Bun ${bun}, ${commit}, SQLite`);
  let startNs = Bun.nanoseconds();
  fillTables(path, { rows, workspaceId, nowMs, days });
  console.log(`${tables.map((table) => `${countRows(path, table)} ${table}`).join(", ")}`);
  console.log(
    `generated in ${Math.round((Bun.nanoseconds() - startNs) / 1e9)} s, ${Math.round(statSync(path).size / 1024 ** 2)} MB`,
  );
  startNs = Bun.nanoseconds();
  const gateway = await startGateway(settings);
  console.log(`gateway started in ${Math.round((Bun.nanoseconds() - startNs) / 1e6)} ms`);
  startNs = Bun.nanoseconds();
  await gateway.app.insights.network.refresh();
  const refreshMs = Math.round((Bun.nanoseconds() - startNs) / 1e6);
  console.log(
    `statistics of the whole service read anew in ${refreshMs} ms, as every ten minutes in the background`,
  );
  const newest = await gateway.get("/analytics/generations?limit=1", {
    authorization: `Bearer ${testManagementKey}`,
  });
  const { data } = (await newest.json()) as { data: { id: string }[] };
  const oldestAt = nowMs - (days - 1) * dayMs;
  const ids = {
    newest: data[0]?.id ?? "",
    oldest: `gen_${oldestAt.toString(16).padStart(12, "0")}${"0".repeat(20)}`,
  };
  const answers: Answer[] = [];
  for (const asked of paths(ids)) answers.push(await measure(gateway, asked));
  report(answers);
  await gateway.stop();
}

const directory = mkdtempSync(join(tmpdir(), "switchyard-insights-"));
try {
  await main(directory);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
