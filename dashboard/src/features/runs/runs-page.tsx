import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { count, usd } from "../../lib/format.ts";
import { Bar } from "../../ui/form.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Card, Empty, LoadedPages, Moment, Name } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { runPagesQuery } from "./api.ts";
import { RunStatus } from "./run-status.tsx";

/** Runs of agents: what each may spend, what it has spent, and whether it goes on. */
export function RunsPage() {
  const runs = useInfiniteQuery(runPagesQuery);
  return (
    <>
      <PageHead title="Runs" />
      <Card flush>
        <LoadedPages query={runs} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty>
                No run yet. An agent opens one with POST /runs, or with the header X-Service-Run.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Runs"
                columns={[
                  {
                    head: "Name",
                    cell: ({ id, name }) => (
                      <Link to="/runs/$id" params={{ id }}>
                        <Name>{name}</Name>
                      </Link>
                    ),
                  },
                  {
                    head: "Spent",
                    cell: ({ name, spent, limit }) => (
                      <>
                        <div>
                          {usd(spent)} of {usd(limit)}
                        </div>
                        <Bar label={name} share={limit === 0 ? 1 : spent / limit} />
                      </>
                    ),
                  },
                  {
                    head: "Requests",
                    number: true,
                    cell: ({ requests, max_requests: most }) =>
                      most === null ? count(requests) : `${count(requests)} of ${count(most)}`,
                  },
                  { head: "State", cell: ({ status }) => <RunStatus status={status} /> },
                  { head: "Opened", cell: ({ created_at: at }) => <Moment at={at} /> },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
    </>
  );
}
