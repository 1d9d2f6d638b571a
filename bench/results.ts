import type { LoadResult } from "./load/job.ts";
import type { StreamsMemory } from "./measure-streams.ts";
import type { PeerWork } from "./peers/peer.ts";
import type { Scenario } from "./scenarios.ts";

/** Figures of one peer in one scenario: medians of the rounds. */
export interface Figures {
  requestsPerSecond: number;
  p50Us: number;
  p99Us: number;
  firstByteP50Us: number;
  /** Failed requests of all rounds. */
  errors: number;
  /** Against `direct` in the same round; absent for `direct` itself. */
  addedP50Us: number | undefined;
  addedP99Us: number | undefined;
  addedFirstByteP50Us: number | undefined;
  /** From the upstream's sending of an event to its arrival; only where events are paced. */
  eventDelayP50Us: number | undefined;
  eventDelayP99Us: number | undefined;
  eventsPerSecond: number | undefined;
  /** CPU time of the peer's process tree; absent where it cannot be read or the peer idles. */
  cpuUsPerRequest: number | undefined;
  cpuUsPerEvent: number | undefined;
  requestsPerCpuSecond: number | undefined;
  /** Resident memory of the peer's process tree at the end of the window. */
  rssKb: number | undefined;
}

/** Why a scenario has no figures. */
export interface ScenarioFailure {
  failure: string;
}

/** What became of one peer. */
export interface PeerResults {
  name: string;
  version: string;
  work?: PeerWork;
  /** Why there are no figures at all. */
  failure?: string;
  /** From spawn to serving, with an empty and with a filled data directory. */
  coldStartMs?: number;
  secondStartMs?: number;
  streams?: StreamsMemory | ScenarioFailure;
  /** wrk's own count, with as many connections as the scenario "1 KB, c10" has. */
  wrkRequestsPerSecond?: number;
  scenarios: Record<string, Figures | ScenarioFailure>;
}

/** Below a tenth of a second of CPU time the 10 ms ticks of /proc are too coarse. */
const leastCpuMs = 100;

/**
 * Figures of one window; the added latencies are counted from `baseline`, the window of `direct` in
 * the same round.
 */
export function figuresOf(
  scenario: Scenario,
  window: { result: LoadResult; baseline: LoadResult | undefined; rssKb?: number | undefined },
): Figures {
  const { result, baseline, rssKb } = window;
  const seconds = result.durationMs / 1000;
  const isPaced = scenario.model === "paced";
  const events = isPaced ? result.eventDelay.count : result.events;
  const cpuMs = result.cpuMs !== undefined && result.cpuMs >= leastCpuMs ? result.cpuMs : undefined;
  return {
    requestsPerSecond: result.completed / seconds,
    p50Us: result.latency.p50Us,
    p99Us: result.latency.p99Us,
    firstByteP50Us: result.firstByte.p50Us,
    errors: result.errors,
    addedP50Us: difference(result.latency.p50Us, baseline?.latency.p50Us),
    addedP99Us: difference(result.latency.p99Us, baseline?.latency.p99Us),
    addedFirstByteP50Us: difference(result.firstByte.p50Us, baseline?.firstByte.p50Us),
    eventDelayP50Us: isPaced ? result.eventDelay.p50Us : undefined,
    eventDelayP99Us: isPaced ? result.eventDelay.p99Us : undefined,
    eventsPerSecond: scenario.stream ? events / seconds : undefined,
    cpuUsPerRequest: cpuMs === undefined || isPaced ? undefined : (cpuMs * 1000) / result.completed,
    cpuUsPerEvent: cpuMs === undefined || !scenario.stream ? undefined : (cpuMs * 1000) / events,
    requestsPerCpuSecond:
      cpuMs === undefined || isPaced ? undefined : result.completed / (cpuMs / 1000),
    rssKb,
  };
}

const difference = (own: number, direct: number | undefined): number | undefined =>
  direct === undefined ? undefined : own - direct;

/** The median of each figure over the rounds; errors are added up. */
export function medianFigures(rounds: readonly Figures[]): Figures {
  const middle = (read: (figures: Figures) => number): number => median(rounds.map(read));
  const middleIfAny = (read: (figures: Figures) => number | undefined): number | undefined => {
    const values = rounds.flatMap((figures) => read(figures) ?? []);
    return values.length === 0 ? undefined : median(values);
  };
  return {
    requestsPerSecond: middle((figures) => figures.requestsPerSecond),
    p50Us: middle((figures) => figures.p50Us),
    p99Us: middle((figures) => figures.p99Us),
    firstByteP50Us: middle((figures) => figures.firstByteP50Us),
    errors: rounds.reduce((sum, figures) => sum + figures.errors, 0),
    addedP50Us: middleIfAny((figures) => figures.addedP50Us),
    addedP99Us: middleIfAny((figures) => figures.addedP99Us),
    addedFirstByteP50Us: middleIfAny((figures) => figures.addedFirstByteP50Us),
    eventDelayP50Us: middleIfAny((figures) => figures.eventDelayP50Us),
    eventDelayP99Us: middleIfAny((figures) => figures.eventDelayP99Us),
    eventsPerSecond: middleIfAny((figures) => figures.eventsPerSecond),
    cpuUsPerRequest: middleIfAny((figures) => figures.cpuUsPerRequest),
    cpuUsPerEvent: middleIfAny((figures) => figures.cpuUsPerEvent),
    requestsPerCpuSecond: middleIfAny((figures) => figures.requestsPerCpuSecond),
    rssKb: middleIfAny((figures) => figures.rssKb),
  };
}

/** The middle value, or the mean of the two in the middle; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? Number.NaN)) / 2 : upper;
}
