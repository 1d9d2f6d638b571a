import { alignedTable } from "../report.ts";
import { median } from "../results.ts";
import type { TurnFigures } from "./measure-turn.ts";

/** Figures of one topology under one load in one turn. */
export interface TopologyTurn extends TurnFigures {
  turn: number;
  topology: string;
  load: string;
  /** Against the mock alone in the same turn. */
  addedP50Us: number;
}

const head = [
  "load",
  "topology",
  "req/s",
  "req/cpu-s",
  "to the first",
  "gateway us/req",
  "Postgres",
  "Valkey",
  "all",
  "p50 ms",
  "+p50 ms",
];

/**
 * Medians of the turns. `to the first` is the median of the ratios to the topology that comes first,
 * in requests for a second of CPU of all programs together, turn by turn.
 */
export function topologyTable(turns: readonly TopologyTurn[]): string {
  const [loads, names] = [unique(turns, "load"), unique(turns, "topology")];
  return alignedTable([
    head,
    ...loads.flatMap((load) =>
      names.map((name) => {
        const own = turns.filter((turn) => turn.load === load && turn.topology === name);
        const first = turns.filter((turn) => turn.load === load && turn.topology === names[0]);
        return [load, name, ...cells(own, first)];
      }),
    ),
  ]);
}

/**
 * Says how the p50 of the topology that comes last compares to that of the first: the median of the
 * ratios, turn by turn.
 */
export function latencyRatio(turns: readonly TopologyTurn[]): string {
  const names = unique(turns, "topology");
  const [first = "", last = ""] = [names[0], names.at(-1)];
  const p50sOf = (name: string): number[] =>
    turns.filter(({ topology }) => topology === name).map(({ p50Us }) => p50Us);
  const others = p50sOf(first);
  const ratios = p50sOf(last).map((p50Us, index) => p50Us / (others[index] ?? NaN));
  return `p50 of ${last}: ${median(ratios).toFixed(2)} of the p50 of ${first}`;
}

const unique = (turns: readonly TopologyTurn[], key: "load" | "topology"): string[] => [
  ...new Set(turns.map((turn) => turn[key])),
];

const allCpuUs = ({ gatewayCpuUs, postgresCpuUs, valkeyCpuUs }: TurnFigures): number =>
  gatewayCpuUs + postgresCpuUs + valkeyCpuUs;

function cells(own: readonly TopologyTurn[], first: readonly TopologyTurn[]): string[] {
  const middle = (read: (turn: TopologyTurn) => number): number => median(own.map(read));
  const ratios = own.flatMap((turn) =>
    first
      .filter((other) => other.turn === turn.turn)
      .map((other) => allCpuUs(other) / allCpuUs(turn)),
  );
  return [
    middle(({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
    (1e6 / middle(allCpuUs)).toFixed(0),
    median(ratios).toFixed(2),
    middle(({ gatewayCpuUs }) => gatewayCpuUs).toFixed(0),
    middle(({ postgresCpuUs }) => postgresCpuUs).toFixed(0),
    middle(({ valkeyCpuUs }) => valkeyCpuUs).toFixed(0),
    middle(allCpuUs).toFixed(0),
    (middle(({ p50Us }) => p50Us) / 1_000).toFixed(2),
    (middle(({ addedP50Us }) => addedP50Us) / 1_000).toFixed(2),
  ];
}
