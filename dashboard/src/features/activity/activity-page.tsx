import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { PageHead } from "../../app/shell.tsx";
import { Actions, Button, Card, Empty, Input, Loaded, Select } from "../../ui/parts.tsx";
import { generationsQuery } from "./api.ts";
import { GenerationDrawer } from "./generation-drawer.tsx";
import { GenerationsTable } from "./generations-table.tsx";

const route = getRouteApi("/activity");

const statuses = [["", "Any status"], ["completed", "Completed"], ["failed", "Failed"], ["cut", "Cut"], ["cancelled", "Cancelled"]] as const;
const ranges = [["", "All that is kept"], ["1", "Last 24 hours"], ["7", "Last 7 days"], ["30", "Last 30 days"]] as const;

/** The log of requests, with its filters in the address. */
export function ActivityPage() {
  const { id, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const { model, provider, status, key_id, days } = filters;
  const query = useInfiniteQuery(generationsQuery({ model, provider, status, key_id, days }));
  const filter = (change: Record<string, string | undefined>): void => void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const isFiltered = [model, provider, status, key_id, days].some((value) => value !== undefined);
  const pages = query.data === undefined ? undefined : query.data.pages.flatMap(({ data }) => data);
  return (
    <>
      <PageHead title="Activity"><Button look="plain" onClick={() => void query.refetch()}>Refresh</Button></PageHead>
      <Card>
        <Actions>
          <Input type="search" aria-label="Model" placeholder="Model id" defaultValue={model} onBlur={(event) => filter({ model: event.target.value || undefined })}
            onKeyDown={(event) => { if (event.key === "Enter") filter({ model: event.currentTarget.value || undefined }); }} />
          <Select label="Status" value={status ?? ""} options={statuses} onChange={(value) => filter({ status: value || undefined })} />
          <Select label="Range" value={days ?? ""} options={ranges} onChange={(value) => filter({ days: value || undefined })} />
        </Actions>
      </Card>
      <Card title="Requests" flush>
        <Loaded query={{ ...query, data: pages }} height={480}>
          {(rows) => rows.length === 0
            ? <Empty action={isFiltered ? <Button onClick={() => void navigate({ search: {} })}>Clear filters</Button> : undefined}>
                {isFiltered ? "Nothing matches." : "No request yet. Send one from the playground."}
              </Empty>
            : <GenerationsTable rows={rows} onOpen={(opened) => filter({ id: opened })} />}
        </Loaded>
        {query.hasNextPage ? <Empty action={<Button look="plain" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Show older</Button>}>{" "}</Empty> : null}
      </Card>
      <GenerationDrawer id={id} onClose={() => filter({ id: undefined })} />
    </>
  );
}
