import { expect, test } from "bun:test";
import {
  type CounterCell,
  newCounter,
  newHistogram,
} from "../../platform/telemetry/metric-family.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { ServerWatch } from "./server-watch.ts";
import type { UpstreamServer } from "./upstream-server.ts";

const server: UpstreamServer = {
  id: "docs",
  name: "Documentation",
  workspaceId: null,
  target: { transport: "streamable_http", url: "https://docs.example/mcp" },
  auth: { type: "none" },
  allowedTools: null,
  priceNanoUsd: 0n,
  timeoutMs: 1_000,
  resultBytesMax: 1_024,
  createdAtMs: null,
  updatedAtMs: null,
};

function newWatch() {
  const clock = new FakeClock();
  const counts = new Map<string, CounterCell>();
  const watch = new ServerWatch({
    clock,
    metrics: {
      toolCall(name, outcome) {
        const key = `${name} ${outcome}`;
        const cell = counts.get(key) ?? newCounter();
        counts.set(key, cell);
        return cell;
      },
      toolCallDuration: () => newHistogram([1]),
    },
  });
  const note = (outcome: "completed" | "failed" | "refused" | "cancelled", workspaceId = "a") =>
    watch.note(server, { workspaceId, outcome, latencyMs: 12 });
  return { clock, counts, watch, note };
}

test("five failures in a row leave a server alone, until one call has tried it", () => {
  const { clock, watch, note } = newWatch();
  for (let call = 0; call < 5; call += 1) {
    watch.admit(server, "a");
    note("failed");
  }
  expect(() => watch.admit(server, "a")).toThrow("tried again in 30 seconds");
  expect(watch.healthOf(server, "a")).toMatchObject({ circuit: "open", failures: 5 });
  expect(watch.openCircuits()).toBe(1);
  clock.advance(30_000);
  watch.admit(server, "a");
  expect(() => watch.admit(server, "a")).toThrow("left alone");
  note("completed");
  watch.admit(server, "a");
  expect(watch.healthOf(server, "a")).toMatchObject({ circuit: "closed", latencyMs: 12 });
});

test("a call that tries a server and fails or is left leaves it alone, and tried again", () => {
  const { clock, watch, note } = newWatch();
  for (let call = 0; call < 5; call += 1) note("failed");
  clock.advance(30_000);
  watch.admit(server, "a");
  note("cancelled");
  watch.admit(server, "a");
  note("failed");
  expect(() => watch.admit(server, "a")).toThrow("tried again in 30 seconds");
});

test("refusals and the failures of another workspace leave a server in use", () => {
  const { counts, watch, note } = newWatch();
  for (let call = 0; call < 9; call += 1) note("refused");
  for (let call = 0; call < 9; call += 1) note("failed", "b");
  watch.admit(server, "a");
  expect(counts.get("docs refused")?.value).toBe(9);
});
