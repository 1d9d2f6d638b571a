import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useRef } from "react";
import { PageHead } from "../../ui/page.tsx";
import { download } from "../../lib/download.ts";
import {
  Actions,
  Awaiting,
  Button,
  Card,
  Empty,
  Facts,
  Loaded,
  NextPage,
  Problem,
  Stale,
  Moment,
  Status,
} from "../../ui/parts.tsx";
import {
  csvPath,
  generationsQuery,
  histogramQuery,
  newerQuery,
  failuresQuery,
  type ActivityFilters,
  type Histogram,
} from "./api.ts";
import { ColumnChoice, useHiddenColumns, GenerationsTable } from "./generations-table.tsx";
import { Filters, type Change } from "./filters.tsx";
import { GenerationDrawer } from "./generation-drawer.tsx";
import { count, localTime, utc, requestCost, usd } from "../../lib/format.ts";
import { RowButton, Table } from "../../ui/table.tsx";

const reasons: Readonly<Record<number, string>> = {
  402: "for want of credits or budget",
  429: "by a rate limit",
};

/**
 * What failed, by code, provider and model, and how many were refused before any provider was
 * asked; absent where nothing was.
 */
function FailuresCard({
  filters,
  onFilter,
}: {
  filters: ActivityFilters;
  onFilter: (change: Record<string, string | undefined>) => void;
}) {
  const query = useQuery(failuresQuery(filters));
  const failures = query.data;
  if (failures === undefined)
    return query.error === null ? (
      <Awaiting queries={[query]} />
    ) : (
      <Card title="What failed">
        <Problem error={query.error} retry={() => void query.refetch()} />
      </Card>
    );
  if (failures.data.length === 0 && failures.refused.length === 0) return null;
  const refused = new Map<number, number>();
  for (const { http_status: status, requests } of failures.refused)
    refused.set(status, (refused.get(status) ?? 0) + requests);
  return (
    <Card title="What failed" flush>
      <Stale queries={[query]} />
      {failures.data.length === 0 ? null : (
        <Table
          rows={failures.data}
          rowKey={({ status, code, provider, model }) => `${status} ${code} ${provider} ${model}`}
          caption="Failures"
          columns={[
            {
              head: "Provider",
              cell: ({ provider, status, code }) => (
                <RowButton
                  onClick={() =>
                    onFilter({ provider: provider ?? undefined, status, error: code ?? undefined })
                  }
                >
                  {provider ?? "none was asked"}
                </RowButton>
              ),
            },
            { head: "Model", cell: ({ model }) => <span className="mono">{model}</span> },
            {
              head: "What",
              cell: ({ status, code, http_status: http }) => (
                <Status kind={status === "failed" ? "bad" : "warning"}>
                  {[status, code, http].filter((part) => part !== null).join(", ")}
                </Status>
              ),
            },
            { head: "Requests", number: true, cell: ({ requests }) => count(requests) },
            {
              head: "Last",
              cell: ({ last_at: at }) => <Moment at={at} />,
            },
          ]}
        />
      )}
      {refused.size === 0 ? null : (
        <ul>
          {[...refused].map(([status, requests]) => (
            <li key={status}>
              {count(requests)} refused with {status} {reasons[status] ?? ""}; they leave no record.
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const height = 56;

/**
 * Requests over the range as bars, those that failed in another colour, with their sums in words.
 */
function ActivityHistogram({ histogram }: { histogram: Histogram }) {
  const {
    data,
    from,
    to,
    bucket_seconds: seconds,
    totals,
    complete,
    counted_from: countedFrom,
  } = histogram;
  const [startMs, stepMs] = [
    Math.floor(Date.parse(from) / (seconds * 1_000)) * seconds * 1_000,
    seconds * 1_000,
  ];
  const buckets = Math.max(1, Math.ceil((Date.parse(to) - startMs) / stepMs));
  const most = Math.max(1, ...data.map(({ requests }) => requests));
  return (
    <div>
      <svg
        viewBox={`0 0 ${buckets * 8} ${height}`}
        preserveAspectRatio="none"
        width="100%"
        height={height}
        role="img"
        aria-label={`${totals.requests} requests, of which ${totals.errors} failed`}
      >
        {data.map(({ bucket, requests, errors }) => {
          const x = ((Date.parse(bucket) - startMs) / stepMs) * 8;
          const [tall, bad] = [Math.max(2, (requests / most) * height), (errors / most) * height];
          return (
            <g key={bucket}>
              <title>{`${localTime(bucket)} (${utc(bucket)}): ${count(requests)} requests, ${count(errors)} failed`}</title>
              <rect x={x} y={height - tall} width="7" height={tall} fill="var(--series-1)" />
              {errors > 0 ? (
                <rect
                  x={x}
                  y={height - Math.max(2, bad)}
                  width="7"
                  height={Math.max(2, bad)}
                  fill="var(--bad)"
                />
              ) : null}
            </g>
          );
        })}
      </svg>
      <Facts
        rows={[
          ["Requests", count(totals.requests)],
          ["Failed", count(totals.errors)],
          ["Tokens", count(totals.tokens)],
          ["Cost", totals.cost < 0.005 ? requestCost(totals.cost) : usd(totals.cost)],
          ...(complete ? [] : [["Counted from", localTime(countedFrom)] as const]),
        ]}
      />
    </div>
  );
}

const route = getRouteApi("/activity");

/**
 * The log of requests, with its filters in the address. It never moves by itself: it says how many
 * are newer.
 */
export function ActivityPage() {
  const { id, ...search } = route.useSearch();
  const { model, provider, status, key_id, error, app, session_id, preset_id } = search;
  const { range, from, to } = search;
  const filters: ActivityFilters = {
    ...{ model, provider, status, key_id, error, app, session_id, preset_id },
    ...{ range, from, to },
  };
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(generationsQuery(filters));
  const histogram = useQuery(histogramQuery(filters));
  const saving = useMutation({ mutationFn: () => download(csvPath(filters), "requests.csv") });
  const filter: Change = (change) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const rows = query.data?.pages.flatMap(({ data }) => data);
  // The first look has no newest row where the list is empty: then everything that comes is newer
  // than it.
  const openedAt = useRef(new Date().toISOString());
  const newer = useQuery(
    newerQuery(filters, rows === undefined ? undefined : (rows[0]?.created_at ?? openedAt.current)),
  );
  const hidden = useHiddenColumns();
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const step = (by: number): void => {
    const next = rows?.[rows.findIndex((row) => row.id === id) + by];
    if (next !== undefined) filter({ id: next.id });
  };
  return (
    <>
      <PageHead title="Activity">
        <Actions>
          {(newer.data?.count ?? 0) > 0 ? (
            <Button
              look="plain"
              onClick={() => {
                void query.refetch();
                void histogram.refetch();
              }}
            >
              <Status kind="good">{newer.data?.text}</Status>
            </Button>
          ) : null}
          <ColumnChoice hidden={hidden ?? []} />
          <Button look="plain" onClick={() => void query.refetch()}>
            Refresh
          </Button>
          <Button look="plain" disabled={saving.isPending} onClick={() => saving.mutate()}>
            {saving.isPending ? "Preparing CSV" : "Download CSV"}
          </Button>
        </Actions>
      </PageHead>
      {saving.error === null ? null : <Problem error={saving.error} />}
      <Filters filters={filters} onFilter={filter} />
      <Card title={range === undefined && from === undefined ? "Last 7 days" : "Over the range"}>
        <Loaded query={histogram} height={120}>
          {(data) => <ActivityHistogram histogram={data} />}
        </Loaded>
      </Card>
      <FailuresCard filters={filters} onFilter={filter} />
      <Card title="Requests" flush>
        <Loaded query={{ ...query, data: hidden && rows }} height={480}>
          {(shown) =>
            shown.length === 0 ? (
              <Empty
                action={
                  isFiltered ? (
                    <Button onClick={() => void navigate({ search: {} })}>Clear filters</Button>
                  ) : undefined
                }
              >
                {isFiltered ? "Nothing matches." : "No request yet. Send one from the playground."}
              </Empty>
            ) : (
              <GenerationsTable
                rows={shown}
                onOpen={(opened) => filter({ id: opened })}
                {...(hidden === undefined ? {} : { hidden })}
              />
            )
          }
        </Loaded>
        <NextPage query={query} />
      </Card>
      <GenerationDrawer id={id} onClose={() => filter({ id: undefined })} onStep={step} />
    </>
  );
}
