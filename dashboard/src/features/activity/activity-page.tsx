import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useRef } from "react";
import { download } from "../../lib/download.ts";
import { PageHead } from "../../ui/page.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { NextPage } from "../../ui/list-pages.tsx";
import { Status } from "../../ui/values.tsx";
import {
  type ActivityFilters,
  csvPath,
  generationsQuery,
  histogramQuery,
  newerQuery,
  type Change,
} from "./api.ts";
import { Filters, defaultRange } from "./filters.tsx";
import { GenerationDrawer, useStepKeys } from "./generation-drawer.tsx";
import { ColumnChoice, useHiddenColumns } from "./column-choice.tsx";
import { GenerationsTable } from "./generations-table.tsx";
import { SavedViews } from "../views/saved-views.tsx";
import { RangeStrip } from "./range-strip.tsx";

const route = getRouteApi("/activity");

/**
 * The log of requests, with its filters in the address. It never moves by itself: it says how many
 * are newer.
 */
export function ActivityPage() {
  const { id, ...search } = route.useSearch();
  const { model, provider, status, key_id, error, app, session_id, preset_id, batch_id } = search;
  const { range, from, to } = search;
  const filters: ActivityFilters = {
    ...{ model, provider, status, key_id, error, app, session_id, preset_id, batch_id },
    ...(range === undefined && from === undefined ? { range: defaultRange } : { range, from, to }),
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
  const isFiltered = Object.values(search).some((value) => value !== undefined);
  // With no request open, the first one is the next.
  const step = (by: number): void => {
    const at = rows?.findIndex((row) => row.id === id) ?? -1;
    const next = rows?.[at + by];
    if (next !== undefined) filter({ id: next.id });
  };
  useStepKeys(step, { isOpen: id !== undefined });
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
          <SavedViews
            page="activity"
            search={search}
            onChoose={(chosen) => void navigate({ search: chosen })}
          />
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
      <RangeStrip filters={filters} histogram={histogram} onFilter={filter} />
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
                openId={id}
                onOpen={(opened) => filter({ id: opened })}
                onFilter={filter}
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
