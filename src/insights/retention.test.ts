import { afterAll, beforeAll, expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { startGateway, type TestGateway } from "../../test/support/gateway.ts";
import { dayMs } from "../platform/lib/clock.ts";
import { newId } from "../platform/lib/ids.ts";
import { generationRow, type GenerationRecord } from "./generation-record.ts";
import { GenerationStore } from "./generation-store.ts";
import { JobRegistry } from "./health/job-registry.ts";
import { Retention } from "./retention.ts";
import { usageAdds } from "./usage-rollup.ts";
import { UsageStore } from "./usage-store.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const record = (workspaceId: string, createdAtMs: number): GenerationRecord => ({
  id: newId("gen", createdAtMs), createdAtMs, workspaceId, keyId: "key", surface: "chat", requestedModel: "m", model: "m", provider: "p",
  upstreamModel: "m", upstreamId: null, status: "completed", finishReason: "stop", streamed: false, promptTokens: 1, completionTokens: 1,
  costNanoUsd: 0n, latencyMs: 1, firstTokenMs: null, attempts: [],
  detail: { usage: {}, priceVersion: null, price: null, holdNanoUsd: "0" },
});

test("records older than the retention go, in steps; younger ones and those of other workspaces stay", async () => {
  const clock = new FakeClock();
  const { storage } = gateway.app;
  const parts = { database: storage.database.withTables(), commits: storage.commits, kind: storage.kind };
  const [generations, usage] = [new GenerationStore(parts), new UsageStore(parts)];
  const nowMs = clock.nowMs();
  const old = Array.from({ length: 2_500 }, (_, index) => record("ws_a", nowMs - 31 * dayMs - index));
  const kept = [record("ws_a", nowMs - 29 * dayMs), record("ws_c", nowMs - 99 * dayMs)];
  await Promise.all([...old, ...kept].map((one) => storage.commits.commit({ inserts: [generationRow(one)], adds: usageAdds(one) })));
  await new Retention({
    generations, usage, jobs: new JobRegistry(clock), clock, keepDays: 30, workspaceIds: () => ["ws_a", "ws_b"], onError: () => undefined,
  }).purge();
  const rows = await storage.database.selectFrom("generations").select("id").execute();
  expect(rows.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort());
});
