import { expect, test } from "bun:test";
import { join } from "node:path";
import { healthThresholds, smokeCadence } from "./thresholds.ts";

const document = await Bun.file(join(import.meta.dir, "../../../docs/health.md")).text();

/** A number as the document writes it: shares in percent, times in their largest whole unit. */
function written(name: string, value: number): string {
  if (/(Rate|Share)$/.test(name)) return `${value * 100} %`;
  if (!name.endsWith("Ms")) return String(value);
  const units: [string, number][] = [
    ["days", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
  ];
  const [unit, length] = units.find(([, milliseconds]) => value % milliseconds === 0) ?? ["ms", 1];
  return `${value / length} ${unit}`;
}

test.each(Object.entries(healthThresholds))(
  "docs/health.md states %s with its value",
  (name, value) => {
    const escaped = written(name, value).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    // The number stands before the constant's name, with a few words between them at most.
    expect(document.replaceAll("\n", " ")).toMatch(
      new RegExp(`(?<![\\d.])${escaped}(?![\\d.])[^|]{0,90}\\(\`${name}\`\\)`),
    );
  },
);

test("docs/health.md states the time of the smoke tests", () => {
  expect(document).toContain(`\`${smokeCadence}\``);
});
