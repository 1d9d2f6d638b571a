import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usd } from "../../lib/format.ts";
import { PageHead } from "../../ui/page.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { batchPagesQuery, nameOf } from "./api.ts";
import { BatchProgress, BatchStatus } from "./batch-progress.tsx";

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Batches: how far each is, and what it costs. */
export function BatchesPage() {
  const batches = useInfiniteQuery(batchPagesQuery);
  return (
    <>
      <PageHead title="Batches" />
      <Card flush>
        <LoadedPages query={batches} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={<a href="/docs/guides/batches">Read how programs send one</a>}>
                No batch yet. A batch is a file of requests that run within a day, often at half the
                price.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Batches"
                columns={[
                  {
                    head: "Batch",
                    phone: "title",
                    cell: (batch) => (
                      <Link to="/batches/$id" params={{ id: batch.id }}>
                        <Name>{nameOf(batch)}</Name>
                      </Link>
                    ),
                  },
                  { head: "Requests", cell: (batch) => <BatchProgress batch={batch} /> },
                  {
                    head: "State",
                    phone: "state",
                    cell: ({ status }) => <BatchStatus status={status} />,
                  },
                  { head: "Cost", number: true, phone: "figure", cell: ({ cost }) => usd(cost) },
                  {
                    head: `Created, ${zoneName()}`,
                    phone: "when",
                    cell: ({ created_at: at }) => <Moment at={timeOf(at)} />,
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
