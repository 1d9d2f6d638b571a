import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { count, usd } from "../../lib/format.ts";
import { DownloadButton } from "../../ui/download-button.tsx";
import { Button } from "../../ui/button.tsx";
import { Card, Facts, Stat, Stats } from "../../ui/card.tsx";
import { Id } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { type Batch, batchQuery, cancelBatch, nameOf } from "./api.ts";
import { BatchProgress, BatchStatus } from "./batch-progress.tsx";

const route = getRouteApi("/batches/$id");

/** How long after its window a batch may still be charged what a provider has run. */
const daySeconds = 86_400;

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** Words for the codes of requests that were not run. */
const notRun: Readonly<Record<string, string>> = {
  batch_expired: "Not run before the batch expired",
  batch_cancelled: "Not run before the batch was cancelled",
};

/** The failures of a batch, by code. */
function Failures({ batch: { failures, errors } }: { batch: Batch }) {
  const rows = Object.entries(failures);
  if (errors !== null)
    return (
      <Card title="Why the input was refused" flush>
        <Table
          rows={errors.data}
          rowKey={({ line, message }) => `${line} ${message}`}
          caption="Problems of the input"
          compact
          columns={[
            { head: "Line", number: true, cell: ({ line }) => (line === null ? "" : count(line)) },
            { head: "Problem", cell: ({ message }) => message },
          ]}
        />
      </Card>
    );
  return (
    <Card title="Failures" flush>
      {rows.length === 0 ? (
        <Empty>No request has failed.</Empty>
      ) : (
        <Table
          rows={rows}
          rowKey={([code]) => code}
          caption="Failures by code"
          compact
          columns={[
            { head: "Code", cell: ([code]) => notRun[code] ?? code },
            { head: "Requests", number: true, cell: ([, lines]) => count(lines) },
          ]}
        />
      )}
    </Card>
  );
}

/** Downloads what a batch has written, and cancels one that runs. */
function BatchActions({ batch }: { batch: Batch }) {
  const queries = useQueryClient();
  const [isDoomed, setDoomed] = useState(false);
  const cancel = useMutation({
    meta: { done: "Batch is being cancelled" },
    mutationFn: cancelBatch,
    onSuccess: () => {
      setDoomed(false);
      return queries.invalidateQueries({ queryKey: ["batches"] });
    },
  });
  const { id, output_file_id: output, error_file_id: errors, status } = batch;
  const mayCancel = status === "validating" || status === "in_progress";
  return (
    <>
      {output === null ? null : (
        <DownloadButton
          path={`/files/${output}/content`}
          name={`${id}.output.jsonl`}
          label="Download answers"
          isMain
        />
      )}
      {errors === null ? null : (
        <DownloadButton
          path={`/files/${errors}/content`}
          name={`${id}.errors.jsonl`}
          label="Download errors"
        />
      )}
      {mayCancel ? (
        <Button look="plain" onClick={() => setDoomed(true)}>
          Cancel batch
        </Button>
      ) : null}
      <Confirm
        title="Cancel this batch"
        open={isDoomed}
        onClose={() => setDoomed(false)}
        onConfirm={() => cancel.mutate(id)}
        action="Cancel batch"
        without="Let it run"
        work={cancel}
      >
        <p>Requests that have not begun are not run. What has run is charged, and stays.</p>
      </Confirm>
    </>
  );
}

/** Returns the note about a pause, which the gateway writes into the metadata. */
const pauseNoteOf = ({ metadata }: Batch): string | undefined =>
  Object.entries(metadata ?? {}).find(([name]) => name.endsWith("_note"))?.[1];

/** One batch: how far it is, what it costs, and what has failed. */
export function BatchPage() {
  const { id } = route.useParams();
  const batch = useQuery(batchQuery(id));
  return (
    <>
      <PageHead
        title={batch.data === undefined ? "Batch" : nameOf(batch.data)}
        within={<Link to="/batches">Batches</Link>}
        state={batch.data === undefined ? null : <BatchStatus status={batch.data.status} />}
      >
        {batch.data === undefined ? null : <BatchActions batch={batch.data} />}
      </PageHead>
      <Loaded query={batch} height={240}>
        {(data) => (
          <>
            <Stats>
              <Stat name="Requests" value={count(data.request_counts.total)} />
              <Stat name="Failed" value={count(data.request_counts.failed)} />
              <Stat name="Cost so far" value={usd(data.cost)} />
              <Stat name="Held" value={usd(data.reserved)} note="for what is still to run" />
            </Stats>
            <Card title="Progress">
              <BatchProgress batch={data} />
              <Facts
                rows={[
                  ["Id", <Id key="id">{data.id}</Id>],
                  ["Endpoint", data.endpoint],
                  ["Runs at", data.provider ?? "this gateway"],
                  ...(data.provider_note === null
                    ? []
                    : [["Why here", data.provider_note] as const]),
                  ...(pauseNoteOf(data) === undefined
                    ? []
                    : [["Waits", pauseNoteOf(data)] as const]),
                  [
                    "Requests",
                    <Link
                      key="requests"
                      to="/activity"
                      search={{
                        batch_id: data.id,
                        from: timeOf(data.created_at),
                        to: timeOf(data.expires_at + daySeconds),
                      }}
                    >
                      Show them in the activity
                    </Link>,
                  ],
                  ["Created", <Moment key="created" at={timeOf(data.created_at)} />],
                  ["Expires", <Moment key="expires" at={timeOf(data.expires_at)} />],
                ]}
              />
            </Card>
            <Failures batch={data} />
          </>
        )}
      </Loaded>
    </>
  );
}
