import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { count, duration, requestCost, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";
import { changeRun, runQuery, type RunNode, type RunRequest, type RunTree } from "./api.ts";
import style from "./runs.module.css";
import { RunStatus } from "./run-status.tsx";

const route = getRouteApi("/runs/$id");

const linesOf = (run: RunNode, depth = 0): { run: RunNode; depth: number }[] => [
  { run, depth },
  ...run.runs.flatMap((inner) => linesOf(inner, depth + 1)),
];

/** The runs of a tree, each below the one that it is in. */
function Tree({ run }: { run: RunTree }) {
  return (
    <Card title="Runs in it" flush>
      <Table
        rows={linesOf(run)}
        rowKey={({ run: { id } }) => id}
        caption="Runs of the tree"
        columns={[
          {
            head: "Name",
            phone: "title",
            cell: ({ run: { name }, depth }) => <Name>{`${"› ".repeat(depth)}${name}`}</Name>,
          },
          {
            head: "Spent",
            phone: "figure",
            cell: ({ run: { name, spent, limit } }) => (
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
            cell: ({ run: { requests } }) => count(requests),
          },
          {
            head: "State",
            phone: "state",
            cell: ({ run: { status } }) => <RunStatus status={status} />,
          },
        ]}
      />
    </Card>
  );
}

/** When a request ran, within the time of all. */
function Lane({ request, from, to }: { request: RunRequest; from: number; to: number }) {
  const whole = Math.max(1, to - from);
  const start = ((Date.parse(request.started_at) - from) / whole) * 100;
  const width = Math.max(1, (request.duration_ms / whole) * 100);
  return (
    <svg
      className={style.lane}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`began after ${duration(Date.parse(request.started_at) - from)}, took ${duration(request.duration_ms)}`}
    >
      <rect x={Math.min(99, start)} width={Math.min(width, 100)} height="6" rx="1" />
    </svg>
  );
}

/** The requests of a tree on one time axis. */
function Waterfall({ requests }: { requests: readonly RunRequest[] }) {
  if (requests.length === 0)
    return (
      <Card title="Requests">
        <Empty>No request yet. The agent sends them with the key of the run.</Empty>
      </Card>
    );
  const from = Math.min(...requests.map((each) => Date.parse(each.started_at)));
  const to = Math.max(...requests.map((each) => Date.parse(each.started_at) + each.duration_ms));
  return (
    <Card title="Requests" flush>
      <Table
        rows={requests}
        rowKey={({ id }) => id}
        caption="Requests of the run"
        columns={[
          {
            head: `Time, ${zoneName()}`,
            phone: "when",
            cell: ({ started_at: at }) => <Moment at={at} />,
          },
          {
            head: "Model",
            phone: "title",
            cell: ({ id, model }) => (
              <Link to="/activity" search={{ id }}>
                <Name>{model}</Name>
              </Link>
            ),
          },
          {
            head: "When it ran",
            phone: "note",
            cell: (request) => <Lane request={request} from={from} to={to} />,
          },
          {
            head: "Duration",
            number: true,
            phone: "state",
            cell: ({ duration_ms: took }) => duration(took),
          },
          {
            head: "Cost",
            number: true,
            phone: "figure",
            cell: ({ cost }) => requestCost(cost),
          },
        ]}
      />
    </Card>
  );
}

/** Adds to a run, pauses it, or ends it. */
function Change({ run }: { run: RunTree }) {
  const queries = useQueryClient();
  const [add, setAdd] = useState("");
  const [isEnding, setEnding] = useState(false);
  const change = useMutation({
    meta: { done: "Run changed" },
    mutationFn: changeRun,
    onSuccess: () => {
      setAdd("");
      setEnding(false);
      return queries.invalidateQueries({ queryKey: ["runs"] });
    },
  });
  const isOver = run.status === "ended" || run.status === "expired";
  if (isOver) return null;
  const isPaused = run.status === "paused";
  return (
    <Card title="Limit">
      <Form
        inline
        action="Add"
        work={change}
        onSubmit={() =>
          change.mutate({ id: run.id, limit: Number((run.limit + Number(add)).toFixed(9)) })
        }
        more={
          <>
            <Button
              look="plain"
              onClick={() => change.mutate({ id: run.id, status: isPaused ? "active" : "paused" })}
            >
              {isPaused ? "Go on" : "Pause"}
            </Button>
            <Button look="plain" onClick={() => setEnding(true)}>
              End
            </Button>
          </>
        }
      >
        <Field param="limit" label="Add, in USD">
          {(id) => (
            <Input
              id={id}
              type="number"
              min="0.000001"
              step="any"
              required
              value={add}
              onChange={({ target }) => setAdd(target.value)}
            />
          )}
        </Field>
      </Form>
      <Confirm
        title={`End ${run.name}`}
        open={isEnding}
        onClose={() => setEnding(false)}
        onConfirm={() => change.mutate({ id: run.id, status: "ended" })}
        action="End run"
        work={change}
      >
        <p>Its key fails at once, and it cannot go on.</p>
      </Confirm>
    </Card>
  );
}

/** One run: what is left, the runs in it, and its requests on one time axis. */
export function RunPage() {
  const { id } = route.useParams();
  const run = useQuery(runQuery(id));
  const mayWrite = useScope("write:llm-keys");
  return (
    <>
      <PageHead
        title={run.data?.data.name ?? "Run"}
        within={<Link to="/runs">Runs</Link>}
        state={run.data === undefined ? null : <RunStatus status={run.data.data.status} />}
      />
      <Loaded query={run} height={240}>
        {({ data }) => (
          <>
            <Stats>
              <Stat name="Spent" value={usd(data.spent)} note={`of ${usd(data.limit)}`} />
              <Stat name="Left" value={usd(data.remaining)} />
              <Stat name="Requests" value={count(data.requests)} />
            </Stats>
            <Tree run={data} />
            <Waterfall requests={data.generations} />
            {mayWrite ? <Change run={data} /> : null}
          </>
        )}
      </Loaded>
    </>
  );
}
