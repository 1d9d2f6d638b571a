import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { NextPage } from "../../ui/list-pages.tsx";
import type { ActivityFilters, Change } from "../activity/api.ts";
import { Filters, defaultRange } from "../activity/filters.tsx";
import { GenerationDrawer, useStepKeys } from "../activity/generation-drawer.tsx";
import { GenerationsTable } from "../activity/generations-table.tsx";
import { anyExplanationQuery, requestsQuery } from "./api.ts";

const route = getRouteApi("/operator");

/** The requests of every workspace, with their filters in the address. */
export function Requests() {
  const { id, group, q: _, ...narrowed } = route.useSearch();
  const hasRange = narrowed.range !== undefined || narrowed.from !== undefined;
  const filters: ActivityFilters = hasRange ? narrowed : { ...narrowed, range: defaultRange };
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(requestsQuery(filters));
  const rows = query.data?.pages.flatMap(({ data }) => data);
  const filter: Change = (change) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const step = (by: number): void => {
    const next = rows?.[rows.findIndex((row) => row.id === id) + by];
    if (next !== undefined) filter({ id: next.id });
  };
  useStepKeys(step, { isOpen: id !== undefined });
  const isFiltered = Object.values(narrowed).some((value) => value !== undefined);
  return (
    <>
      <Filters filters={filters} onFilter={filter} acrossWorkspaces />
      <Card title="Requests of every workspace" flush>
        <Loaded query={{ ...query, data: rows }} height={480}>
          {(shown) =>
            shown.length === 0 ? (
              <Empty
                action={
                  isFiltered ? (
                    <Button onClick={() => void navigate({ search: { group } })}>
                      Clear filters
                    </Button>
                  ) : undefined
                }
              >
                {isFiltered ? "Nothing matches." : "No workspace has sent a request yet."}
              </Empty>
            ) : (
              <GenerationsTable
                rows={shown}
                openId={id}
                onOpen={(opened) => filter({ id: opened })}
                onFilter={filter}
                further={[
                  {
                    head: "Workspace",
                    cell: ({ workspace_id: workspace, workspace_name: name }) => (
                      <span title={workspace}>{name ?? workspace}</span>
                    ),
                  },
                ]}
              />
            )
          }
        </Loaded>
        <NextPage query={query} />
      </Card>
      <GenerationDrawer
        id={id}
        onClose={() => filter({ id: undefined })}
        onStep={step}
        read={anyExplanationQuery}
        isOwn={false}
      />
    </>
  );
}
