import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { temporaryDirectory } from "./process.ts";

/** Two scrapes of a gateway: before a fault, and while it lasts. */
export interface FaultScrapes {
  before: string;
  during: string;
}

interface AlertRule {
  alert: string;
  expr: string;
  for?: string;
}

const rulesPath = join(import.meta.dir, "..", "..", "deploy", "prometheus", "alerts.yaml");
const rules = (
  parse(readFileSync(rulesPath, "utf8")) as { groups: { rules: AlertRule[] }[] }
).groups.flatMap(({ rules: each }) => each);

/** The names of all alerts in `deploy/prometheus/alerts.yaml`. */
export const alertNames = rules.map(({ alert }) => alert);

/** Seconds between two samples, as `deploy/prometheus/prometheus.yaml` scrapes. */
const intervalSeconds = 15;
/** Samples before the fault. */
const calmSamples = 8;
const windowSeconds = 300;

/**
 * Declares a test that an alert of `deploy/prometheus` fires by the metrics that a gateway really
 * exposed before and during a fault, and does not fire before it.
 *
 * Gauges keep the value of the fault. Counters go up once, or, with `goesOn`, by the same amount at
 * each scrape for as long as the fault lasts. A series that was not there before has no sample then,
 * as in Prometheus. Skipped without `promtool`.
 */
export function testAlert(
  name: string,
  scrapes: () => FaultScrapes,
  { goesOn = false }: { goesOn?: boolean } = {},
): void {
  const hasPromtool = Bun.which("promtool") !== null;
  test.skipIf(!hasPromtool)(`${name} fires${hasPromtool ? "" : " (missing: promtool)"}`, () =>
    expectAlert(ruleOf(name), scrapes(), goesOn),
  );
}

function ruleOf(name: string): AlertRule {
  const rule = rules.find(({ alert }) => alert === name);
  if (rule === undefined) throw new Error(`deploy/prometheus/alerts.yaml has no alert ${name}`);
  return rule;
}

const secondsOf = (duration = "0s"): number =>
  Number.parseInt(duration, 10) * (duration.endsWith("m") ? 60 : 1);

function expectAlert(rule: AlertRule, scrapes: FaultScrapes, goesOn: boolean): void {
  const faultSeconds = calmSamples * intervalSeconds;
  const heldSeconds = secondsOf(rule.for) + (goesOn ? windowSeconds : 0) + 2 * intervalSeconds;
  const firing = `count(ALERTS{alertname="${rule.alert}",alertstate="firing"})`;
  const path = join(temporaryDirectory(), "fault.yaml");
  const evaluations = [
    { expr: firing, eval_time: `${faultSeconds - intervalSeconds}s`, exp_samples: [] },
    {
      expr: `${firing} > bool 0`,
      eval_time: `${faultSeconds + heldSeconds}s`,
      exp_samples: [{ labels: "{}", value: 1 }],
    },
  ];
  const series = seriesOf(rule.expr, scrapes, {
    goesOn,
    faultSamples: Math.ceil(heldSeconds / intervalSeconds) + 2,
  });
  const document = {
    rule_files: [rulesPath],
    evaluation_interval: `${intervalSeconds}s`,
    tests: [
      {
        interval: `${intervalSeconds}s`,
        input_series: series,
        promql_expr_test: evaluations,
      },
    ],
  };
  writeFileSync(path, JSON.stringify(document));
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", "test", "rules", path]);
  expect({ exitCode, output: exitCode === 0 ? "" : `${stdout}${stderr}` }).toEqual({
    exitCode: 0,
    output: "",
  });
}

/** Samples of the metrics that an expression names, by series, in promtool's notation. */
function seriesOf(
  expression: string,
  { before, during }: FaultScrapes,
  fault: { goesOn: boolean; faultSamples: number },
): { series: string; values: string }[] {
  const names = new Set(expression.match(/\b(?:switchyard_\w+|up)\b/g));
  const isNamed = (series: string): boolean => names.has(/^\w+/.exec(series)?.[0] ?? "");
  const [calm, faulty] = [samplesOf(before), samplesOf(during)];
  const all = new Set([...calm.keys(), ...faulty.keys()].filter(isNamed));
  return [...all].map((series) => {
    const [from, to] = [calm.get(series), faulty.get(series)];
    const calmPart = from === undefined ? `_x${calmSamples}` : `${from}x${calmSamples - 1}`;
    const step = fault.goesOn && isCounter(series, during) ? (to ?? 0) - (from ?? 0) : 0;
    const faultPart =
      to === undefined ? "stale" : `${to}${step === 0 ? "" : `+${step}`}x${fault.faultSamples}`;
    return { series: withInstance(series), values: `${calmPart} ${faultPart}` };
  });
}

/** Values of a scrape by series (`name{labels}`). */
function samplesOf(scrape: string): Map<string, number> {
  const lines = scrape.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

function isCounter(series: string, scrape: string): boolean {
  const name = (/^\w+/.exec(series)?.[0] ?? "").replace(/_bucket$/, "");
  const [, type] = new RegExp(`^# TYPE ${name} (\\w+)$`, "m").exec(scrape) ?? [];
  return type === "counter" || type === "histogram";
}

/** The labels that Prometheus adds to what it scrapes. */
function withInstance(series: string): string {
  const own = 'instance="gateway:9464",job="switchyard"';
  const [, name, labels] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
  return `${name}{${labels === undefined ? own : `${labels},${own}`}}`;
}
