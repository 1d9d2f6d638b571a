import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { usd } from "../../lib/format.ts";
import { PageHead } from "../../ui/page.tsx";
import { Card, Empty, LoadedPages, Moment, Name } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { batchPagesQuery } from "./api.ts";
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
              <Empty>
                No batch yet. Upload a file of requests and create one with POST /batches, or run
                switchyard batches run in.jsonl.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Batches"
                columns={[
                  {
                    head: "Batch",
                    cell: ({ id }) => (
                      <Link to="/batches/$id" params={{ id }}>
                        <Name>{id}</Name>
                      </Link>
                    ),
                  },
                  { head: "Requests", cell: (batch) => <BatchProgress batch={batch} /> },
                  { head: "State", cell: ({ status }) => <BatchStatus status={status} /> },
                  { head: "Cost", number: true, cell: ({ cost }) => usd(cost) },
                  { head: "Created", cell: ({ created_at: at }) => <Moment at={timeOf(at)} /> },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
    </>
  );
}
