import { isServable } from "../src/inference/pipeline/upstream-targets.ts";
import type { ChatCall } from "../src/inference/pipeline/inference-call.ts";
import { planCall, type PlanDependencies } from "../src/inference/pipeline/plan/plan-call.ts";
import { HealthWindows } from "../src/inference/routing/health/health-windows.ts";
import { ProviderStates } from "../src/insights/health/provider-states.ts";
import { systemClock } from "../src/platform/kernel/clock.ts";
import { largeCatalog, modelIdAt } from "../test/support/large-catalog.ts";
import { callOn, planDependencies, type Body } from "../test/support/planned-body.ts";
import { seeded } from "../test/support/seeded.ts";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";
import { median } from "./results.ts";

/** What a plan may take at the median, in microseconds. */
const barUs = 50;
const [models, routesPerModel] = [500, 10];
const [rounds, plansPerRound] = [400, 20];

const messages = [{ role: "user", content: "Say hello in three languages." }];
const tools = [
  { type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } },
];

/** What is asked, by what it shows. */
const bodies: Record<string, Body> = {
  "one model": { model: modelIdAt(0) },
  "one model, with a session": { model: modelIdAt(0), session_id: "s" },
  "a suffix": { model: `${modelIdAt(0)}:nitro` },
  "a model and two fallbacks": { model: modelIdAt(0), models: [modelIdAt(1), modelIdAt(2)] },
  "every field of the provider object": {
    model: modelIdAt(0),
    tools,
    response_format: { type: "json_object" },
    provider: {
      order: ["p3", "p4"],
      allow_fallbacks: true,
      require_parameters: true,
      require_params: ["tools"],
      min_context: 1_000,
      data_collection: "deny",
      zdr: true,
      only: Array.from({ length: 40 }, (_, index) => `p${index}`),
      ignore: ["p2"],
      quantizations: ["fp8", "bf16"],
      sort: { by: "latency", partition: "none" },
      preferred_min_throughput: { p50: 10, p90: 5 },
      preferred_max_latency: { p50: 5, p99: 20 },
      max_price: { prompt: "100", completion: "100" },
    },
  },
  "service/auto": { model: "service/auto" },
  "service/auto:floor[200k] with tools": { model: "service/auto:floor[200k]", tools },
  "service/free": { model: "service/free" },
};

/** A gateway's traffic of the last minutes, so that windows have something in them. */
function warmed(random: () => number): HealthWindows {
  const states = new ProviderStates({
    clock: systemClock,
    known: new Map(),
    onChange: () => undefined,
  });
  const health = new HealthWindows(systemClock, (id) => states.stateOf(id));
  for (let count = 0; count < 20_000; count += 1) {
    const [id, model, fails] = [
      `p${Math.floor(random() * 50)}`,
      modelIdAt(Math.floor(random() * 20)),
      random() < 0.02,
    ];
    states.record(id, fails ? "outage" : "served");
    if (fails) health.recordFailure(id, model);
    else
      health.recordSuccess(id, {
        model,
        firstTokenMs: 100 + 900 * random(),
        tokensPerSecond: 20 + 80 * random(),
      });
  }
  return health;
}

/**
 * Microseconds a plan takes: the median of many short rounds, of which other work on the machine
 * disturbs few.
 */
function planUs(deps: PlanDependencies, call: ChatCall): number {
  const figures: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startNs = Bun.nanoseconds();
    for (let count = 0; count < plansPerRound; count += 1) planCall(deps, call);
    figures.push((Bun.nanoseconds() - startNs) / 1_000 / plansPerRound);
  }
  return median(figures);
}

function rowsAt(size: number): Map<string, { us: number; candidates: number }> {
  const random = seeded(7);
  const catalog = largeCatalog({ models: size, routesPerModel });
  const deps = { ...planDependencies(catalog, { health: warmed(random), random }), isServable };
  return new Map(
    Object.entries(bodies).map(([name, body]) => {
      const call = callOn("chat", { messages, ...body });
      return [name, { us: planUs(deps, call), candidates: planCall(deps, call).candidates.length }];
    }),
  );
}

const { cpu, cores, bun, commit } = describeMachine(".");
const small = rowsAt(models / 10);
const large = rowsAt(models);
console.log(`${cpu}, ${cores} cores, Bun ${bun}, ${commit}`);
const sizes = [models / 10, models].map(
  (size) => `${size} models with ${size * routesPerModel} rows`,
);
console.log(`us a plan at the median: ${sizes.join(", ")}`);
console.log(
  alignedTable([
    ["request", "candidates", `${models / 10} models`, `${models} models`],
    ...[...large].map(([name, { us, candidates }]) => [
      name,
      String(candidates),
      (small.get(name)?.us ?? 0).toFixed(1),
      us.toFixed(1),
    ]),
  ]),
);
const slow = [...large].filter(([, { us }]) => us > barUs);
if (slow.length > 0) {
  console.log(`over ${barUs} us: ${slow.map(([name]) => name).join(", ")}`);
  process.exitCode = 1;
}
