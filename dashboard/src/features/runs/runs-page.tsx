import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { count, usd } from "../../lib/format.ts";
import { Card } from "../../ui/card.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { PageHead } from "../../ui/page.tsx";
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
              <Empty action={<a href="/docs/guides/agent-runs">Read how agents open one</a>}>
                No run yet. A run is one job of an agent with a limit of its own, shared by all the
                requests that it makes.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Runs"
                columns={[
                  {
                    head: "Name",
                    phone: "title",
                    cell: ({ id, name }) => (
                      <Link to="/runs/$id" params={{ id }}>
                        <Name>{name}</Name>
                      </Link>
                    ),
                  },
                  {
                    head: "Spent",
                    phone: "figure",
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
                  {
                    head: "State",
                    phone: "state",
                    cell: ({ status }) => <RunStatus status={status} />,
                  },
                  {
                    head: `Opened, ${zoneName()}`,
                    phone: "when",
                    cell: ({ created_at: at }) => <Moment at={at} />,
                  },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
    </>
  );
}
