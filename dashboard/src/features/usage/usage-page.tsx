import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { Suspense, lazy, useCallback } from "react";
import { PageHead } from "../../ui/page.tsx";
import { saveFile } from "../../lib/download.ts";
import type { RangeSearch } from "../../lib/time.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Awaiting, Empty, Loaded, Skeleton } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { SavedViews } from "../views/saved-views.tsx";
import style from "../../ui/ui.module.css";
import {
  type Names,
  type PageGroup,
  type Usage,
  type UsageGroup,
  type UsageRow,
  filterOf,
  groupOf,
  isDivision,
  partsQuery,
  usageQuery,
} from "./api.ts";
import { type Chosen, chosenOf, figures, heads } from "./usage-choices.ts";
import { csvOf, partsCsvOf } from "./usage-export.ts";
import { UsageFilters } from "./usage-filters.tsx";
import { UsageParts } from "./usage-parts.tsx";
import { Sums, SumsTable } from "./usage-sums.tsx";
import { useNames } from "./use-names.ts";

const UsageChart = lazy(async () => ({ default: (await import("./usage-chart.tsx")).UsageChart }));

const route = getRouteApi("/usage");

/** What the API groups by for what the page groups by: people by their keys, parts by nothing. */
const apiGroupOf = (group: PageGroup | undefined): UsageGroup | undefined =>
  group === "person" ? "key" : group === "part" ? undefined : group;

/** The same rows as files. */
const Exports = ({ rows, csv }: { rows: readonly object[]; csv: string }) => (
  <Actions>
    <Button look="plain" onClick={() => saveFile("usage.csv", csv, "text/csv")}>
      Download CSV
    </Button>
    <Button
      look="plain"
      onClick={() => saveFile("usage.json", JSON.stringify(rows, null, 2), "application/json")}
    >
      Download JSON
    </Button>
  </Actions>
);

/** The parts that are shown as files. */
function PartExports(shown: Parameters<typeof UsageParts>[0]) {
  const { data } = useQuery(partsQuery(shown.range, shown.division));
  const rows = data?.data ?? [];
  return <Exports rows={rows} csv={partsCsvOf(rows)} />;
}

/** The chosen figure of each group, over time and as a table. */
function Grouped({
  usage,
  before,
  chosen: { figure, isCumulative, limit, group, second },
  names,
  nameOf,
  head,
  range,
}: {
  usage: Usage;
  before: readonly UsageRow[];
  chosen: Chosen;
  names: Names;
  nameOf: (row: UsageRow) => string;
  head: string;
  range: RangeSearch;
}) {
  const searchOf = (name: string) => {
    const filter = second === undefined ? filterOf(group, name, names) : undefined;
    const named = range.from === undefined ? (range.range ?? "14d") : undefined;
    return filter && { ...filter, ...range, range: named };
  };
  return (
    <>
      <Card title={figures.find(([key]) => key === figure)?.[1] ?? ""} flush>
        <Suspense fallback={<Skeleton height={280} />}>
          <UsageChart usage={usage} figure={figure} nameOf={nameOf} cumulative={isCumulative} />
        </Suspense>
      </Card>
      <Card title="Figures" flush>
        <SumsTable
          rows={usage.data}
          before={before}
          figure={figure}
          nameOf={nameOf}
          head={head}
          searchOf={searchOf}
          limit={Number(limit)}
        />
      </Card>
    </>
  );
}

/** Spend, tokens, requests and errors over time, grouped, against the period before. */
export function UsagePage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const chosen = chosenOf(search);
  const { group } = chosen;
  const second = group === "part" ? undefined : chosen.second;
  const division = isDivision(chosen.second) ? chosen.second : undefined;
  const range = { range: search.range, from: search.from, to: search.to };
  const wanted = {
    range,
    group: apiGroupOf(group),
    second: apiGroupOf(second),
    tag: chosen.tag,
    local: chosen.isLocal,
  };
  const now = useQuery(usageQuery(wanted));
  const before = useQuery(usageQuery({ ...wanted, before: true }));
  const names = useNames([group, second]);
  const nameOf = useCallback(
    (row: UsageRow): string =>
      second === undefined || second === group
        ? groupOf(row, group, names)
        : `${groupOf(row, group, names)} · ${groupOf(row, second, names)}`,
    [group, second, names],
  );
  const set = (changed: Record<string, string | undefined>): void =>
    void navigate({ search: (was) => ({ ...was, ...changed }), replace: true });
  const head = [group, second]
    .flatMap((each) => (each === undefined ? [] : heads[each]))
    .join(" · ");
  return (
    <>
      <PageHead title="Usage">
        <SavedViews
          page="usage"
          search={search}
          onChoose={(chosenView) => void navigate({ search: chosenView })}
        />
        {group === "part" ? (
          <PartExports range={range} division={division} />
        ) : (
          <Exports rows={now.data?.data ?? []} csv={csvOf(now.data?.data ?? [])} />
        )}
      </PageHead>
      <UsageFilters chosen={chosen} range={range} onChange={set} />
      <Loaded query={now} height={420}>
        {(usage) =>
          usage.data.length === 0 ? (
            <Card>
              <Empty action={<Link to="/playground">Send one from the playground</Link>}>
                No request in this range. Choose a longer one, or send a request.
              </Empty>
            </Card>
          ) : (
            <>
              <Awaiting queries={[before]} />
              {usage.counted_from === null ? null : (
                <p className={style.hint}>
                  Counted from the newest 60,000 requests, which begin at{" "}
                  <Moment at={usage.counted_from} />.
                </p>
              )}
              <Sums rows={usage.data} before={before.data?.data} />
              {group === "part" ? (
                <UsageParts range={range} division={division} />
              ) : (
                <Grouped
                  usage={usage}
                  before={before.data?.data ?? []}
                  chosen={chosen}
                  names={names}
                  nameOf={nameOf}
                  head={head}
                  range={range}
                />
              )}
            </>
          )
        }
      </Loaded>
    </>
  );
}
