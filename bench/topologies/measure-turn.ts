import type { LoadGenerator } from "../load/load-generator.ts";
import type { LoadResult } from "../load/job.ts";
import { cpuTimeMs } from "../process/proc-stat.ts";
import { median } from "../results.ts";
import type { RunningTopology } from "./start-topology.ts";

/** A load of one turn, over all connections together. */
export interface TurnLoad {
  name: string;
  durationMs: number;
  /** Absent, as many requests as go through. */
  ratePerSecond?: number;
}

/** Where the load goes. */
export interface TurnTarget {
  ports: readonly number[];
  headers: Record<string, string>;
  model: string;
  /** Absent where nothing is read of it. */
  processes?: RunningTopology["processes"];
}

/** What one turn came to. */
export interface TurnFigures {
  requestsPerSecond: number;
  p50Us: number;
  /** CPU time of each part for a request, in microseconds. */
  gatewayCpuUs: number;
  postgresCpuUs: number;
  valkeyCpuUs: number;
}

const connectionsEach = 8;
const parts = ["gateway", "postgres", "valkey"] as const;

/** A topology as the target of a load. */
export const chatTarget = ({ ports, key, processes }: RunningTopology): TurnTarget => ({
  ports,
  headers: { authorization: `Bearer ${key}` },
  model: "mock/large",
  processes,
});

/** Puts one load on a target; throws where requests fail. */
export async function measureTurn(
  generators: readonly LoadGenerator[],
  target: TurnTarget,
  load: TurnLoad,
): Promise<TurnFigures> {
  const before = cpuOf(target);
  const results = await Promise.all(
    generators.map((generator, index) =>
      generator.closedLoop({
        target: {
          port: target.ports[index % target.ports.length] ?? 0,
          path: "/v1/chat/completions",
          headers: target.headers,
          model: target.model,
          stream: false,
          bodyBytes: 1_000,
        },
        connections: connectionsEach,
        warmupMs: 0,
        durationMs: load.durationMs,
        watchPids: [],
        ...(load.ratePerSecond !== undefined && {
          ratePerSecond: load.ratePerSecond / generators.length,
        }),
      }),
    ),
  );
  return turnFigures(results, before, cpuOf(target));
}

/** CPU time in milliseconds of the processes of each part so far. */
const cpuOf = ({ processes }: TurnTarget): number[] =>
  parts.map((part) => (processes === undefined ? 0 : (cpuTimeMs(processes[part]()) ?? 0)));

/** Adds up what the load generators saw, and divides the CPU time of each part by it. */
export function turnFigures(
  results: readonly Pick<
    LoadResult,
    "completed" | "errors" | "firstError" | "durationMs" | "latency"
  >[],
  cpuBeforeMs: readonly number[],
  cpuAfterMs: readonly number[],
): TurnFigures {
  const failed = results.find(({ errors }) => errors > 0);
  if (failed !== undefined) throw new Error(`${failed.errors} failed: ${failed.firstError}`);
  const completed = results.reduce((sum, result) => sum + result.completed, 0);
  const [gatewayCpuUs = 0, postgresCpuUs = 0, valkeyCpuUs = 0] = parts.map(
    (_, index) => (((cpuAfterMs[index] ?? 0) - (cpuBeforeMs[index] ?? 0)) * 1_000) / completed,
  );
  return {
    requestsPerSecond: results.reduce(
      (sum, result) => sum + result.completed / (result.durationMs / 1_000),
      0,
    ),
    p50Us: median(results.map(({ latency }) => latency.p50Us)),
    gatewayCpuUs,
    postgresCpuUs,
    valkeyCpuUs,
  };
}
