import { Link } from "@tanstack/react-router";
import { change, count, countOf, share, usd } from "../../lib/format.ts";
import { Stat, Stats } from "../../ui/card.tsx";
import { Table } from "../../ui/table.tsx";
import { type Figure, type UsageRow, limited, sumOf, totalsOf } from "./api.ts";

/** The figures of a range, each against the period before. */
export function Sums({
  rows,
  before,
}: {
  rows: readonly UsageRow[];
  before: readonly UsageRow[] | undefined;
}) {
  const against = (figure: "cost" | "requests" | "tokens"): string =>
    before === undefined ? "" : change(sumOf(rows, figure), sumOf(before, figure));
  return (
    <Stats>
      <Stat name="Spend" value={usd(sumOf(rows, "cost"))} note={against("cost")} />
      <Stat name="Requests" value={count(sumOf(rows, "requests"))} note={against("requests")} />
      <Stat name="Tokens" value={count(sumOf(rows, "tokens"))} note={against("tokens")} />
      <Stat
        name="Failed"
        value={share(sumOf(rows, "errors"), sumOf(rows, "requests"))}
        note={countOf(sumOf(rows, "errors"), "request")}
      />
      <Stat
        name="From cache"
        value={share(sumOf(rows, "cached_tokens"), sumOf(rows, "prompt_tokens"))}
        note="of input tokens"
      />
    </Stats>
  );
}

type SumRow = ReturnType<typeof limited>[number];

/** The same figures as the chart, each against the period before. */
export function SumsTable({
  rows,
  before,
  figure,
  nameOf,
  head,
  limit,
  searchOf,
}: {
  rows: readonly UsageRow[];
  before: readonly UsageRow[];
  /** The filters of the list of requests that leads to those of a group, where there are any. */
  searchOf: (name: string) => Readonly<Record<string, string | undefined>> | undefined;
  /** How many groups have a row of their own. */
  limit: number;
  figure: Figure;
  nameOf: (row: UsageRow) => string;
  head: string;
}) {
  const totals = totalsOf(rows, { figure, nameOf });
  const earlier = totalsOf(before, { figure, nameOf });
  const named = [...totals.keys()].slice(0, limit);
  const others = [...earlier].reduce(
    (sum, [name, total]) => (named.includes(name) ? sum : sum + total),
    0,
  );
  const beforeOf = ([name, , isOther]: SumRow): number =>
    isOther ? others : (earlier.get(name) ?? 0);
  const shown = figure === "cost" ? usd : count;
  return (
    <Table
      rows={limited(totals, limit)}
      rowKey={([name]) => name}
      caption="Sums by group"
      columns={[
        {
          head,
          phone: "title",
          cell: ([name, , isOther]) => {
            const search = isOther ? undefined : searchOf(name);
            return search === undefined ? (
              name
            ) : (
              <Link to="/activity" search={search}>
                {name}
              </Link>
            );
          },
          sort: ([name]) => name,
        },
        {
          head: "Sum",
          number: true,
          phone: "figure",
          cell: ([, total]) => shown(total),
          sort: ([, total]) => total,
        },
        {
          head: "Share",
          number: true,
          phone: "when",
          unit: "of all",
          cell: ([, total]) => share(total, sumOf(rows, figure)),
        },
        {
          head: "Before",
          number: true,
          cell: (row) => shown(beforeOf(row)),
          sort: beforeOf,
        },
        {
          head: "Change",
          number: true,
          phone: "state",
          cell: (row) => change(row[1], beforeOf(row)).replace(" against the period before", ""),
          sort: (row) => row[1] - beforeOf(row),
        },
      ]}
    />
  );
}
