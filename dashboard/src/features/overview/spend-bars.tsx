import { memo } from "react";
import { count, shortDay, usd } from "../../lib/format.ts";
import { type Figure, type Usage, type UsageRow, chartOf } from "../usage/api.ts";
import { SeriesLegend } from "../usage/series-legend.tsx";
import style from "./spend-bars.module.css";

const [step, wide, tall] = [12, 10, 200];
const lines = 4;

type Chart = ReturnType<typeof chartOf>;

/** Stacks the parts of one day: each with its colour, its top and its height. */
function partsOf(
  bucket: Chart["buckets"][number],
  { series, top }: Pick<Chart, "series"> & { top: number },
) {
  let below = 0;
  return series.flatMap(({ key, name, colour }) => {
    const figure = Number(bucket[key] ?? 0);
    if (figure === 0) return [];
    below += figure;
    return [{ name, colour, figure, y: tall * (1 - below / top), height: (tall * figure) / top }];
  });
}

/** Returns the least round figure above all, of which a quarter is round too. */
function roundTop(most: number): number {
  const size = 10 ** Math.floor(Math.log10(most / lines));
  return lines * size * ([1, 2, 2.5, 5].find((times) => lines * size * times >= most) ?? 10);
}

/** The axis: a line for each quarter, with its figure. */
function Axis({ top, shown }: { top: number; shown: (figure: number) => string }) {
  return (
    <div className={style["axis"]} aria-hidden="true">
      {Array.from({ length: lines + 1 }, (_, index) => (
        <span key={index}>{shown((top * (lines - index)) / lines)}</span>
      ))}
    </div>
  );
}

/**
 * Draws the figures of some days by group as stacked bars. Plain SVG: the first screen loads no
 * library for it. The usage screen has the same figures as a table.
 */
export const SpendBars = memo(function SpendBars({
  usage,
  figure,
  nameOf = ({ model }) => model ?? "unknown",
}: {
  usage: Usage;
  figure: Figure;
  nameOf?: (row: UsageRow) => string;
}) {
  const { buckets, series } = chartOf(usage, { figure, nameOf });
  const shown = figure === "cost" ? usd : count;
  const sums = buckets.map((bucket) =>
    series.reduce((sum, { key }) => sum + Number(bucket[key] ?? 0), 0),
  );
  const most = Math.max(...sums);
  const top = roundTop(most > 0 ? most : 1);
  /** One of so many days has its name below it. */
  const named = Math.ceil(buckets.length / 7);
  const dayOf = (index: number): string => shortDay(String(buckets.at(index)?.["bucket"]));
  return (
    <>
      <SeriesLegend series={series} figure={figure} />
      <div className={style["plot"]}>
        <Axis top={top} shown={shown} />
        <svg
          viewBox={`0 0 ${buckets.length * step} ${tall}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${shown(sums.reduce((sum, each) => sum + each, 0))} from ${dayOf(0)} to ${dayOf(-1)}, at most ${shown(most)} a day`}
        >
          {buckets.map((bucket, index) => {
            const parts = partsOf(bucket, { series, top });
            const words = parts.map(({ name, figure: part }) => `${name} ${shown(part)}`);
            return (
              <g key={String(bucket["bucket"])}>
                <title>
                  {[`${dayOf(index)} (UTC): ${shown(sums[index])}`, ...words].join("\n")}
                </title>
                <rect className={style["day"]} x={index * step} width={step} height={tall} />
                {parts.map(({ name, colour, y, height }) => (
                  <rect
                    key={name}
                    x={index * step + 1}
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
          {buckets.map((bucket, index) => (
            <span
              key={String(bucket["bucket"])}
              className={index % (2 * named) === 0 ? undefined : style["between"]}
            >
              {index % named === 0 ? dayOf(index) : null}
            </span>
          ))}
        </div>
      </div>
    </>
  );
});
