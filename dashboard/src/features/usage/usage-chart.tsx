import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { shortDay, usd, count } from "../../lib/format.ts";
import style from "../../ui/ui.module.css";
import type { UsageGroup, UsageRow } from "./api.ts";

/** The figures that are drawn. */
export type Figure = "cost" | "requests" | "tokens" | "errors";

const seriesMax = 6;
const colours = ["var(--series-1)", "var(--series-2)", "var(--series-3)", "var(--series-4)", "var(--series-5)", "var(--series-6)"];

const groupOf = (row: UsageRow, group: UsageGroup): string =>
  (group === "model" ? row.model : group === "key" ? row.key_id : row.provider) ?? "unknown";

/** Rows of the chart: one a day, with a figure for each of the largest groups and one for the others. */
export function chartOf(rows: readonly UsageRow[], { group, figure }: { group: UsageGroup; figure: Figure }) {
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(groupOf(row, group), (totals.get(groupOf(row, group)) ?? 0) + row[figure]);
  const largest = [...totals].toSorted((a, b) => b[1] - a[1]).slice(0, seriesMax).map(([name]) => name);
  const days = new Map<string, Record<string, number | string>>();
  for (const row of rows) {
    const name = groupOf(row, group);
    const series = largest.includes(name) ? name : "other";
    const day = days.get(row.bucket) ?? { day: row.bucket };
    day[series] = Number(day[series] ?? 0) + row[figure];
    days.set(row.bucket, day);
  }
  const other = [...totals].filter(([name]) => !largest.includes(name)).reduce((sum, [, total]) => sum + total, 0);
  const series = [
    ...largest.map((name, index) => ({ name, colour: colours[index] ?? "var(--series-other)", total: totals.get(name) ?? 0 })),
    ...(other > 0 ? [{ name: "other", colour: "var(--series-other)", total: other }] : []),
  ];
  return { days: [...days.values()].toSorted((a, b) => String(a["day"]).localeCompare(String(b["day"]))), series };
}

/** A figure by day as stacked bars, with a legend that carries the sums. */
export function UsageChart({ rows, group, figure }: { rows: readonly UsageRow[]; group: UsageGroup; figure: Figure }) {
  const { days, series } = chartOf(rows, { group, figure });
  const shown = figure === "cost" ? usd : count;
  return (
    <>
      <ul className={style.legend}>
        {series.map(({ name, colour, total }) => (
          <li key={name}><span className={style.swatch} style={{ background: colour }} /><span className="mono">{name}</span> {shown(total)}</li>
        ))}
      </ul>
      <ResponsiveContainer width="100%" height={240}>
        <BarChart data={days} margin={{ top: 12, right: 16, bottom: 4, left: 8 }} accessibilityLayer>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="day" tickFormatter={shortDay} tick={{ fill: "var(--third)", fontSize: 11 }} tickLine={false} axisLine={false} />
          <YAxis tickFormatter={(value: number) => shown(value)} tick={{ fill: "var(--third)", fontSize: 11 }} tickLine={false} axisLine={false} width={64} />
          <Tooltip labelFormatter={(day) => `${shortDay(String(day))} (UTC)`} formatter={(value) => shown(Number(value))}
            contentStyle={{ background: "var(--surface)", border: "1px solid var(--line)", borderRadius: 6, color: "var(--text)" }}
            itemStyle={{ color: "var(--text)" }} cursor={{ fill: "var(--muted)" }} isAnimationActive={false} />
          {series.map(({ name, colour }) => <Bar key={name} dataKey={name} stackId="all" fill={colour} maxBarSize={48} isAnimationActive={false} stroke="var(--surface)" />)}
        </BarChart>
      </ResponsiveContainer>
    </>
  );
}
