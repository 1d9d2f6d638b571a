/**
 * Measures what the commit of a settlement costs in the embedded database: alone, and with fifty
 * under way, for both durabilities. Rounds take turns, so that other work on the machine disturbs
 * all alike.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildStorage, type AppTables } from "../src/app/parts/build-storage.ts";
import { chargeRows } from "../src/billing/ledger/transfer.ts";
import { generationRow } from "../src/insights/generation-record.ts";
import { usageAdds } from "../src/insights/usage/usage-rollup.ts";
import { newId } from "../src/platform/kernel/ids.ts";
import type { CommitUnit } from "../src/platform/storage/commit-queue.ts";
import type { Durability, Storage } from "../src/platform/storage/storage.ts";
import { createLogger } from "../src/platform/telemetry/logger.ts";
import { recordOf } from "../test/support/generation-records.ts";

const rounds = 3;
const scenarios = [
  { name: "lone", inFlight: 1, units: 1_500 },
  { name: "50 in flight", inFlight: 50, units: 15_000 },
] as const;
const durabilities: readonly Durability[] = ["power", "process"];

/** What a settled chat request of one of fifty keys commits. */
function settlement(index: number): CommitUnit {
  const nowMs = Date.now();
  const id = newId("gen", nowMs);
  const keyId = `key_${"0".repeat(20)}${index % 50}`;
  const workspaceId = `ws_${"0".repeat(20)}1`;
  const record = recordOf({
    id,
    createdAtMs: nowMs,
    workspaceId,
    keyId,
    promptTokens: 120,
    completionTokens: 80,
    costNanoUsd: 12_345n,
    detail: {
      usage: { inputTokens: 120, outputTokens: 80 },
      priceVersion: "2026-11-01",
      price: { prompt: "0.50", completion: "1.50", cache_read: "0.05", reasoning: "1.50" },
      holdNanoUsd: "1234567",
      origin: "https://example.com",
      traceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    },
  });
  const charge = chargeRows({
    chargeId: id,
    workspaceId,
    keyId,
    parts: { monthlyNano: 0n, topupNano: 12_345n },
    posted: { chargedNano: 12_345n, uncollectedNano: 0n },
    byokNano: 0n,
    nowMs,
  });
  return {
    inserts: [...charge.inserts, generationRow(record)],
    adds: [...charge.adds, ...usageAdds(record)],
  };
}

/** CPU time of all threads but the one that runs this, in microseconds. */
function otherThreadsCpuUs(): number {
  let ticks = 0;
  for (const thread of readdirSync("/proc/self/task")) {
    if (thread === String(process.pid)) continue;
    const fields = readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ")[1] ?? "";
    const [user, system] = fields.split(" ").slice(11, 13).map(Number);
    ticks += (user ?? 0) + (system ?? 0);
  }
  return ticks * 10_000;
}

interface Measured {
  p50Ms: number;
  p99Ms: number;
  perSecond: number;
  threadUs: number;
}

async function measure(
  { commits }: Storage<AppTables>,
  { inFlight, units }: { inFlight: number; units: number },
): Promise<Measured> {
  const latencies: number[] = [];
  let next = 0;
  const cpuBefore = otherThreadsCpuUs();
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (next < units) {
        const unit = settlement(next++);
        const startMs = performance.now();
        await commits.commit(unit, { moreMayFollow: inFlight > 1 });
        latencies.push(performance.now() - startMs);
      }
    }),
  );
  const seconds = (performance.now() - begin) / 1_000;
  // What is done after the answers belongs to them.
  await Bun.sleep(1_200);
  latencies.sort((left, right) => left - right);
  return {
    p50Ms: latencies[units >> 1] ?? 0,
    p99Ms: latencies[Math.floor(units * 0.99)] ?? 0,
    perSecond: units / seconds,
    threadUs: (otherThreadsCpuUs() - cpuBefore) / units,
  };
}

const median = (values: number[]): number =>
  values.toSorted((left, right) => left - right)[values.length >> 1] ?? 0;

const root = mkdtempSync(join(process.env["BENCH_DIRECTORY"] ?? tmpdir(), "switchyard-commits-"));
const storages = new Map<Durability, Storage<AppTables>>();
for (const durability of durabilities) {
  const storageUrl = `sqlite:${join(root, `${durability}.db`)}`;
  storages.set(
    durability,
    await buildStorage(
      { storageUrl, durability, sharedUrl: undefined },
      createLogger({ level: "silent" }),
    ),
  );
}
const found = new Map<string, Measured[]>();
for (let round = 0; round <= rounds; round += 1) {
  for (const scenario of scenarios) {
    for (const [durability, storage] of storages) {
      const name = `${durability}, ${scenario.name}`;
      const measured = await measure(storage, scenario);
      // The first round compiles.
      if (round > 0) found.set(name, [...(found.get(name) ?? []), measured]);
    }
  }
}
for (const [name, each] of found) {
  const of = (part: keyof Measured): string => median(each.map((one) => one[part])).toFixed(3);
  console.log(
    `${name.padEnd(24)} p50 ${of("p50Ms")} ms  p99 ${of("p99Ms")} ms  ${of("perSecond")}/s  thread ${of("threadUs")} us a unit`,
  );
}
for (const storage of storages.values()) await storage.close();
rmSync(root, { recursive: true, force: true });
