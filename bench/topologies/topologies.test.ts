import { describe, expect, test } from "bun:test";
import { LatencyHistogram } from "../load/latency-histogram.ts";
import { parentOf } from "../process/proc-stat.ts";
import { turnFigures } from "./measure-turn.ts";
import { latencyRatio, topologyTable, type TopologyTurn } from "./topology-table.ts";

const result = (completed: number, p50Us: number, errors = 0) => ({
  completed,
  errors,
  durationMs: 2_000,
  latency: { ...new LatencyHistogram().summary(), p50Us },
  ...(errors > 0 && { firstError: "status 503: no" }),
});

describe("figures of a turn", () => {
  test("divide the CPU time of each part by the requests of all load generators", () => {
    const results = [result(100, 900), result(300, 1_000), result(100, 4_000)];
    expect(turnFigures(results, [1_000, 500, 40], [1_500, 600, 50])).toEqual({
      requestsPerSecond: 250,
      p50Us: 1_000,
      gatewayCpuUs: 1_000,
      postgresCpuUs: 200,
      valkeyCpuUs: 20,
    });
  });

  test("throw when requests failed", () => {
    expect(() => turnFigures([result(1, 1), result(0, 0, 3)], [], [])).toThrow(
      "3 failed: status 503: no",
    );
  });
});

const turn = (index: number, topology: string, gatewayCpuUs: number): TopologyTurn => ({
  turn: index,
  topology,
  load: "all",
  requestsPerSecond: 100,
  p50Us: 2_000,
  addedP50Us: 1_500,
  gatewayCpuUs,
  postgresCpuUs: 0,
  valkeyCpuUs: 0,
});

test("latencies are compared turn by turn", () => {
  const at = (index: number, topology: string, p50Us: number): TopologyTurn => ({
    ...turn(index, topology, 1),
    p50Us,
  });
  const turns = [
    ...[at(0, "one", 1_000), at(0, "three", 3_000)],
    ...[at(1, "three", 1_500), at(1, "one", 3_000)],
    ...[at(2, "one", 2_000), at(2, "three", 2_400)],
  ];
  expect(latencyRatio(turns)).toBe("p50 of three: 1.20 of the p50 of one");
});

test("the table has medians, and ratios turn by turn", () => {
  const turns = [
    ...[turn(0, "one", 200), turn(0, "two", 800)],
    ...[turn(1, "one", 400), turn(1, "two", 800)],
    ...[turn(2, "one", 300), turn(2, "two", 900)],
  ];
  const lines = topologyTable(turns)
    .split("\n")
    .map((line) => line.split(/\s+/));
  expect(lines.slice(1)).toEqual([
    ["all", "one", "100", "3333", "1.00", "300", "0", "0", "300", "2.00", "1.50"],
    ["all", "two", "100", "1250", "0.33", "800", "0", "0", "800", "2.00", "1.50"],
  ]);
});

test.skipIf(process.platform !== "linux")("parentOf returns the parent of a process", () => {
  expect(parentOf(process.pid)).toBe(process.ppid);
});
