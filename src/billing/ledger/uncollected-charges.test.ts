import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { UncollectedCharges, type RefusedCharge } from "./uncollected-charges.ts";

const chargeOf = (ordinal: number): RefusedCharge => ({
  chargeId: `gen_${ordinal}`,
  workspaceId: "ws",
  keyId: "key",
  amountNano: 5n,
  alongside: { inserts: [], adds: [] },
});

function build() {
  const commits = new MemoryCommits();
  const told: string[] = [];
  const uncollected = new UncollectedCharges({
    commits,
    clock: new FakeClock(),
    reports: {
      onKept: () => undefined,
      onWritten: (count, nano) => void told.push(`written ${count} ${nano}`),
      onLost: (count, nano) => void told.push(`lost ${count} ${nano}`),
    },
  });
  return { commits, told, uncollected };
}

test("a refused charge is booked to the operator and costs the workspace nothing", async () => {
  const { commits, told, uncollected } = build();
  uncollected.keep(chargeOf(1));
  await uncollected.stop();
  const [unit] = commits.units;
  expect(unit?.inserts.map(({ values }) => values.slice(1, 5))).toEqual([
    ["operator:uncollected", "operator:revenue", 5, "uncollected"],
  ]);
  expect(unit?.adds.map(({ key, sums }) => [key[0], sums[0]])).toEqual([
    ["key", 0],
    ["operator:uncollected", -5],
    ["operator:revenue", 5],
  ]);
  expect(told).toEqual(["written 1 5"]);
});

test("a charge that is refused again is kept, and reported as lost at shutdown", async () => {
  const { commits, told, uncollected } = build();
  for (const ordinal of [1, 2, 3]) uncollected.keep(chargeOf(ordinal));
  commits.failNext = true;
  await uncollected.stop();
  expect(commits.units).toEqual([]);
  expect(told).toEqual(["lost 3 15"]);
});

test("at most 10,000 refused charges are kept; further charges are reported as lost at once", async () => {
  const { told, uncollected } = build();
  for (let ordinal = 0; ordinal <= 10_000; ordinal += 1) uncollected.keep(chargeOf(ordinal));
  expect([uncollected.count, told]).toEqual([10_000, ["lost 1 5"]]);
  await uncollected.stop();
  expect(told).toContain("written 500 2500");
  expect(uncollected.count).toBe(0);
});
