import { memo } from "react";
import { count, shortDay, usd } from "../../lib/format.ts";
import { type Figure, type UsageRow, chartOf } from "../usage/api.ts";
import { SeriesLegend } from "../usage/series-legend.tsx";
import style from "./spend-bars.module.css";

const [step, wide, tall] = [12, 10, 200];

type Chart = ReturnType<typeof chartOf>;

/** Stacks the parts of one day: each with its colour, its top and its height. */
function partsOf(
  bucket: Chart["buckets"][number],
  { series, most }: Pick<Chart, "series"> & { most: number },
) {
  let below = 0;
  return series.flatMap(({ key, name, colour }) => {
    const figure = Number(bucket[key] ?? 0);
    if (figure === 0) return [];
    below += figure;
    return [{ name, colour, figure, y: tall * (1 - below / most), height: (tall * figure) / most }];
  });
}

/**
 * Draws the figures of some days by model as stacked bars. Plain SVG: the first screen loads no
 * library for it. The usage screen has the same figures as a table.
 */
export const SpendBars = memo(function SpendBars({
  rows,
  figure,
}: {
  rows: readonly UsageRow[];
  figure: Figure;
}) {
  const { buckets, series } = chartOf(rows, { figure, nameOf: ({ model }) => model ?? "unknown" });
  const shown = figure === "cost" ? usd : count;
  const sums = buckets.map((bucket) =>
    series.reduce((sum, { key }) => sum + Number(bucket[key] ?? 0), 0),
  );
  const most = Math.max(...sums);
  const dayOf = (index: number): string => shortDay(String(buckets.at(index)?.["bucket"]));
  return (
    <>
      <SeriesLegend series={series} figure={figure} />
      <div className={style["plot"]}>
        <span>{shown(most)}</span>
        <svg
          viewBox={`0 0 ${buckets.length * step} ${tall}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${shown(sums.reduce((sum, each) => sum + each, 0))} from ${dayOf(0)} to ${dayOf(-1)}, at most ${shown(most)} a day`}
        >
          {buckets.map((bucket, index) => {
            const parts = partsOf(bucket, { series, most });
            const words = parts.map(({ name, figure: part }) => `${name} ${shown(part)}`);
            return (
              <g key={String(bucket["bucket"])}>
                <title>
                  {[`${dayOf(index)} (UTC): ${shown(sums[index])}`, ...words].join("\n")}
                </title>
                {parts.map(({ name, colour, y, height }) => (
                  <rect
                    key={name}
                    x={index * step}
                    y={y}
                    width={wide}
                    height={height}
                    fill={colour}
                  />
                ))}
              </g>
            );
          })}
        </svg>
        <div className={style["days"]}>
          <span>{dayOf(0)}</span>
          <span>{dayOf(-1)}</span>
        </div>
      </div>
    </>
  );
});
