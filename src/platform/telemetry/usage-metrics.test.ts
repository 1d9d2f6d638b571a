import { expect, test } from "bun:test";
import { UsageMetrics, type UsageLabel } from "./usage-metrics.ts";

/** The samples of a metric, each as its labels and its value. */
function samplesOf(metrics: UsageMetrics, name: string): [Record<string, string>, number][] {
  const definition = metrics.definitions().find((each) => each.name === `switchyard_usage_${name}`);
  if (definition === undefined || !("family" in definition) || definition.kind !== "counter")
    throw new Error(`there is no counter ${name}`);
  return definition.family.entries().map(({ labels, cell }) => [labels, cell.value]);
}

const usage = (key: string, model = "acme/small") => ({
  workspace: "ws_1",
  key,
  model,
  tokens: { inputTokens: 7, outputTokens: 3 },
  chargedNanoUsd: 40n,
});

test.each<[UsageLabel[], Record<string, string>]>([
  [["workspace"], { workspace: "ws_1" }],
  [["key", "model"], { key: "key_1", model: "acme/small" }],
])("counts by %j", (labels, expected) => {
  const metrics = new UsageMetrics({ labels, seriesMax: 10 });
  metrics.record(usage("key_1"));
  metrics.record(usage("key_1"));
  expect(samplesOf(metrics, "requests_total")).toEqual([[expected, 2]]);
  expect(samplesOf(metrics, "charged_nano_usd_total")).toEqual([[expected, 80]]);
  expect(samplesOf(metrics, "tokens_total")).toEqual([
    [{ ...expected, kind: "input" }, 14],
    [{ ...expected, kind: "output" }, 6],
  ]);
});

test("counts pictures and sound by kind", () => {
  const metrics = new UsageMetrics({ labels: ["model"], seriesMax: 10 });
  const tokens = { inputTokens: 5, outputImages: 2, inputAudioMs: 0, characters: 11 };
  metrics.record({ ...usage("key_1", "acme/paint"), tokens });
  metrics.record({ ...usage("key_1", "acme/paint"), tokens: { outputImages: 1 } });
  expect(samplesOf(metrics, "media_units_total")).toEqual([
    [{ model: "acme/paint", kind: "images" }, 3],
    [{ model: "acme/paint", kind: "characters" }, 11],
  ]);
});

test("counts what is beyond its series as other", () => {
  const metrics = new UsageMetrics({ labels: ["key"], seriesMax: 2 });
  for (const key of ["key_1", "key_2", "key_3", "key_4", "key_1"]) metrics.record(usage(key));
  expect(samplesOf(metrics, "requests_total")).toEqual([
    [{ key: "key_1" }, 2],
    [{ key: "key_2" }, 1],
    [{ key: "other" }, 2],
  ]);
});
