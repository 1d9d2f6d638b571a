import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type KeyboardEvent, useRef } from "react";
import { PageHead } from "../../ui/page.tsx";
import { download } from "../../lib/download.ts";
import {
  Actions,
  Button,
  Card,
  Empty,
  Input,
  Loaded,
  Problem,
  Select,
  Status,
} from "../../ui/parts.tsx";
import {
  type ActivityFilters,
  csvPath,
  generationsQuery,
  histogramQuery,
  newerQuery,
} from "./api.ts";
import { FailuresCard } from "./failures-card.tsx";
import { GenerationDrawer } from "./generation-drawer.tsx";
import { GenerationsTable } from "./generations-table.tsx";
import { ActivityHistogram } from "./histogram.tsx";

const route = getRouteApi("/activity");

const statuses = [
  ["", "Any status"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cut", "Cut"],
  ["cancelled", "Cancelled"],
  ["cached", "From cache"],
] as const;
const ranges = [
  ["", "All that is kept"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
] as const;
const texts = [
  ["model", "Model"],
  ["provider", "Provider"],
  ["error", "Error code"],
  ["app", "App"],
  ["key_id", "Key id"],
] as const;

type Change = (change: Record<string, string | undefined>) => void;

function Filters({ filters, onFilter }: { filters: ActivityFilters; onFilter: Change }) {
  const take = (name: string, input: HTMLInputElement): void =>
    onFilter({ [name]: input.value.trim() || undefined });
  return (
    <Card>
      <Actions>
        {texts.map(([name, label]) => (
          // The key gives the field its new text where the filter was changed elsewhere.
          <Input
            key={`${name} ${filters[name] ?? ""}`}
            type="search"
            aria-label={label}
            placeholder={label}
            defaultValue={filters[name]}
            onBlur={(event) => {
              if ((filters[name] ?? "") !== event.target.value.trim()) take(name, event.target);
            }}
            onKeyDown={(event: KeyboardEvent<HTMLInputElement>) => {
              if (event.key === "Enter") take(name, event.currentTarget);
            }}
          />
        ))}
        <Select
          label="Status"
          value={filters.status ?? ""}
          options={statuses}
          onChange={(value) => onFilter({ status: value || undefined })}
        />
        <Select
          label="Range"
          value={filters.range ?? ""}
          options={ranges}
          onChange={(value) =>
            onFilter({ range: value || undefined, from: undefined, to: undefined })
          }
        />
      </Actions>
    </Card>
  );
}

/**
 * The log of requests, with its filters in the address. It never moves by itself: it says how many
 * are newer.
 */
export function ActivityPage() {
  const { id, model, provider, status, key_id, error, app, range, from, to } = route.useSearch();
  const filters: ActivityFilters = { model, provider, status, key_id, error, app, range, from, to };
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
              <Status kind="good">{`${newer.data?.text} newer requests`}</Status>
            </Button>
          ) : null}
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
        <Loaded query={{ ...query, data: rows }} height={480}>
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
              <GenerationsTable rows={shown} onOpen={(opened) => filter({ id: opened })} />
            )
          }
        </Loaded>
        {query.hasNextPage ? (
          <Empty
            action={
              <Button
                look="plain"
                disabled={query.isFetchingNextPage}
                onClick={() => void query.fetchNextPage()}
              >
                Show older
              </Button>
            }
          >
            {" "}
          </Empty>
        ) : null}
      </Card>
      <GenerationDrawer id={id} onClose={() => filter({ id: undefined })} onStep={step} />
    </>
  );
}
