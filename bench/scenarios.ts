/** One load that every peer is put under. */
export interface Scenario {
  name: string;
  stream: boolean;
  /** `large` answers at once, `paced` streams an event every 10 ms. */
  model: "large" | "paced";
  bodyBytes: number;
  connections: number;
  /** Requests a second over all connections; absent, as many as go through. */
  ratePerSecond?: number;
  /** Length of the measured window; the plan's own when absent. */
  durationMs?: number;
}

/** How much is measured. */
export interface Plan {
  rounds: number;
  /**
   * Once a peer, whole answers and streams each: compilers of hot code need more than a window's
   * warm-up.
   */
  peerWarmupMs: number;
  /** Before each window. */
  warmupMs: number;
  durationMs: number;
  scenarios: readonly Scenario[];
  quietStreams: number;
  /** Milliseconds of the cross-check with wrk, once a peer. */
  wrkMs: number;
  /** No further round is begun that would end after this. */
  budgetMs: number;
}

const whole = { stream: false, model: "large" } as const;
const burst = { stream: true, model: "large" } as const;
const paced = { stream: true, model: "paced" } as const;

/** A stream lasts a second, so a window has to hold whole ones. */
const pacedMs = 1_500;

const scenarios: readonly Scenario[] = [
  { name: "1 KB, 500/s", ...whole, bodyBytes: 1_000, connections: 10, ratePerSecond: 500 },
  { name: "1 KB, c10", ...whole, bodyBytes: 1_000, connections: 10 },
  { name: "1 KB, c200", ...whole, bodyBytes: 1_000, connections: 200 },
  {
    name: "1 KB, 300/s",
    ...whole,
    bodyBytes: 1_000,
    connections: 10,
    ratePerSecond: 300,
    durationMs: 2_500,
  },
  { name: "100 KB, c10", ...whole, bodyBytes: 100_000, connections: 10 },
  { name: "100 KB, c200", ...whole, bodyBytes: 100_000, connections: 200 },
  { name: "1 MB, c10", ...whole, bodyBytes: 1_000_000, connections: 10 },
  { name: "stream burst, c10", ...burst, bodyBytes: 1_000, connections: 10 },
  { name: "stream burst, c200", ...burst, bodyBytes: 1_000, connections: 200 },
  {
    name: "stream paced, 50/s",
    ...paced,
    bodyBytes: 1_000,
    connections: 100,
    ratePerSecond: 50,
    durationMs: 2_500,
  },
  { name: "stream paced, c10", ...paced, bodyBytes: 1_000, connections: 10, durationMs: pacedMs },
  { name: "stream paced, c200", ...paced, bodyBytes: 1_000, connections: 200, durationMs: pacedMs },
];

/** What a peer is warmed up with. */
export const warmups: readonly Scenario[] = [
  { name: "warm-up, whole", ...whole, bodyBytes: 1_000, connections: 32 },
  { name: "warm-up, streams", ...burst, bodyBytes: 1_000, connections: 32 },
];

const quickNames = new Set([
  "1 KB, c10",
  "1 KB, c200",
  "100 KB, c10",
  "stream burst, c10",
  "stream paced, c200",
]);

/** Everything, in under seven minutes with five peers; some 16 seconds a peer and round. */
export const fullPlan: Plan = {
  rounds: 3,
  peerWarmupMs: 5_000,
  warmupMs: 250,
  durationMs: 1_000,
  scenarios,
  quietStreams: 2_000,
  wrkMs: 2_000,
  budgetMs: 400_000,
};

/** The main figures once, in under a minute. */
export const quickPlan: Plan = {
  rounds: 1,
  peerWarmupMs: 500,
  warmupMs: 200,
  durationMs: 800,
  scenarios: scenarios.filter(({ name }) => quickNames.has(name)),
  quietStreams: 500,
  wrkMs: 0,
  budgetMs: 58_000,
};

/**
 * A plan with other rounds, or with those scenarios alone whose names begin so; the time that it may
 * take grows with its rounds. Throws where no scenario is left.
 */
export function adjustedPlan(
  plan: Plan,
  { rounds, names }: { rounds: number | undefined; names: readonly string[] },
): Plan {
  const chosen = plan.scenarios.filter(
    ({ name }) => names.length === 0 || names.some((each) => name.startsWith(each)),
  );
  if (chosen.length === 0) throw new Error(`no scenario's name begins with ${names.join(" or ")}`);
  if (rounds === undefined) return { ...plan, scenarios: chosen };
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("rounds: expected a whole number");
  return {
    ...plan,
    scenarios: chosen,
    rounds,
    budgetMs: (plan.budgetMs * Math.max(rounds, plan.rounds)) / plan.rounds,
  };
}
