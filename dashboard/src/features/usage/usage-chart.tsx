import { memo } from "react";
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { count, shortDay, usd } from "../../lib/format.ts";
import { type Figure, type Usage, type UsageRow, chartOf } from "./api.ts";
import { SeriesLegend } from "./series-legend.tsx";

const axisTick = { fill: "var(--third)", fontSize: 11 } as const;
const tooltipStyle = {
  background: "var(--surface)",
  border: "1px solid var(--line)",
  borderRadius: 6,
  color: "var(--text)",
} as const;

/** An hour of UTC or a day of a zone, as the axis has it. */
const bucketText = (
  iso: string,
  { interval, zone }: { interval: "hour" | "day"; zone: string },
): string => (interval === "day" ? shortDay(iso, zone) : `${iso.slice(11, 16)}`);

/**
 * A figure over time as stacked bars, with a legend that carries the sums. Drawn again only when
 * what it shows has changed.
 */
export const UsageChart = memo(function UsageChart({
  usage,
  figure,
  nameOf,
  cumulative,
}: {
  usage: Usage;
  figure: Figure;
  nameOf: (row: UsageRow) => string;
  cumulative: boolean;
}) {
  const { interval, time_zone: zone } = usage;
  const { buckets, series } = chartOf(usage, { figure, nameOf, cumulative });
  const shown = figure === "cost" ? usd : count;
  return (
    <>
      <SeriesLegend series={series} figure={figure} />
      <ResponsiveContainer width="100%" height={240}>
        <BarChart
          data={buckets}
          margin={{ top: 12, right: 16, bottom: 4, left: 8 }}
          accessibilityLayer
        >
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis
            dataKey="bucket"
            tickFormatter={(iso: string) => bucketText(iso, { interval, zone })}
            tick={axisTick}
            tickLine={false}
            axisLine={false}
          />
          <YAxis
            tickFormatter={(value: number) => shown(value)}
            tick={axisTick}
            tickLine={false}
            axisLine={false}
            width={64}
          />
          <Tooltip
            labelFormatter={(iso) =>
              `${shortDay(String(iso), zone)} ${interval === "hour" ? bucketText(String(iso), { interval, zone }) : ""} (${zone})`
            }
            formatter={(value) => shown(Number(value))}
            contentStyle={tooltipStyle}
            itemStyle={{ color: "var(--text)" }}
            cursor={{ fill: "var(--muted)" }}
            isAnimationActive={false}
          />
          {series.map(({ key, name, colour }) => (
            <Bar
              key={key}
              dataKey={key}
              name={name}
              stackId="all"
              fill={colour}
              maxBarSize={48}
              isAnimationActive={false}
              stroke="var(--surface)"
            />
          ))}
        </BarChart>
      </ResponsiveContainer>
    </>
  );
});
