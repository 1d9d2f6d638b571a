import { hourMs, minuteMs, type Clock } from "../../platform/lib/clock.ts";

const cells = hourMs / minuteMs;

/** What is summed up of requests. */
export interface TrafficSums {
  requests: number;
  errors: number;
  latencyMs: number;
  /** Requests whose latency is known; those that failed have none. */
  timed: number;
  promptTokens: number;
  cachedTokens: number;
}

const nothing: TrafficSums = {
  requests: 0,
  errors: 0,
  latencyMs: 0,
  timed: 0,
  promptTokens: 0,
  cachedTokens: 0,
};

/** Sums over the last hour, minute by minute; recording is constant work, memory 60 cells. */
export class TrafficWindow {
  private readonly clock: Clock;
  private readonly sums: TrafficSums[] = Array.from({ length: cells }, () => ({ ...nothing }));
  private readonly minutes = new Float64Array(cells).fill(-1);

  constructor(clock: Clock) {
    this.clock = clock;
  }

  record(request: Partial<TrafficSums>): void {
    const minute = this.minute();
    const index = minute % cells;
    if (this.minutes[index] !== minute) {
      this.minutes[index] = minute;
      this.sums[index] = { ...nothing };
    }
    addTo(this.sums[index] ?? { ...nothing }, request);
  }

  /** The sums of the last hour, the minute under way included. */
  lastHour(): TrafficSums {
    const minute = this.minute();
    const total = { ...nothing };
    this.sums.forEach((sums, index) => {
      const age = minute - (this.minutes[index] ?? -1);
      if (age >= 0 && age < cells) addTo(total, sums);
    });
    return total;
  }

  private minute(): number {
    return Math.floor(this.clock.monotonicMs() / minuteMs);
  }
}

const names = Object.keys(nothing) as (keyof TrafficSums)[];

function addTo(total: TrafficSums, more: Partial<TrafficSums>): void {
  for (const name of names) total[name] += more[name] ?? 0;
}
