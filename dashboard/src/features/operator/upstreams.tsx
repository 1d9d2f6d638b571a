import { zoneName } from "../../lib/time.ts";
import type { Bodies } from "../../lib/api-types.ts";
import { sending } from "../../lib/api.ts";
import { useQuery } from "@tanstack/react-query";
import { count, countOf, duration } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { upstreamsQuery } from "./api.ts";
import { ChangeProblem, useChange } from "./changes.tsx";

/** Shows the state of each provider, and its smoke test, which can be repeated where it failed. */
export function Upstreams() {
  const upstreams = useQuery(upstreamsQuery);
  const changing = useChange("Providers tested");
  const test = (body: Bodies["POST /admin/smoke-tests"]): void =>
    changing.mutate({ path: "/admin/smoke-tests", ...sending("POST /admin/smoke-tests", body) });
  return (
    <Card
      title="Providers"
      actions={
        <Button look="plain" disabled={changing.isPending} onClick={() => test({})}>
          Test all now
        </Button>
      }
      flush
    >
      <ChangeProblem error={changing.error} />
      <Loaded query={upstreams} height={360}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No provider is known.</Empty>
          ) : (
            <Table
              rows={data.toSorted((a, b) => Number(b.routed) - Number(a.routed))}
              rowKey={({ id }) => id}
              caption="All providers"
              columns={[
                {
                  head: "Provider",
                  phone: "title",
                  cell: ({ id, name }) => (
                    <>
                      <div>{name}</div>
                      <code>{id}</code>
                    </>
                  ),
                },
                {
                  head: "State",
                  phone: "state",
                  cell: ({ routed, states }) => (
                    <Status kind={!routed ? undefined : states.length > 0 ? "bad" : "good"}>
                      {!routed ? "no credential" : states.map(wordOf).join(", ") || "works"}
                    </Status>
                  ),
                },
                {
                  head: "Last hour",
                  number: true,
                  phone: "when",
                  cell: ({ last_hour: hour }) =>
                    `${countOf(hour.requests, "request")}, ${count(hour.errors)} failed`,
                },
                {
                  head: "Latency",
                  number: true,
                  phone: "figure",
                  cell: ({ last_hour: hour }) => duration(hour.latency_ms),
                },
                {
                  head: `Last failure, ${zoneName()}`,
                  offTablet: true,
                  cell: ({ last_failure_at: at }) => <Moment at={at} />,
                },
                {
                  head: "Smoke test",
                  offTablet: true,
                  phone: "note",
                  cell: ({ smoke_test: smoke }) =>
                    smoke === null
                      ? "none yet"
                      : `${smoke.outcome}${smoke.message === null ? "" : `: ${smoke.message}`}`,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: ({ id, routed, states }) => (
                    <Actions>
                      {routed ? (
                        <Button
                          look="plain"
                          disabled={changing.isPending}
                          onClick={() => test({ provider: id })}
                        >
                          Test now
                        </Button>
                      ) : null}
                      {states.length > 0 ? (
                        <Button
                          look="plain"
                          onClick={() =>
                            changing.mutate({
                              method: "POST",
                              path: `/admin/upstreams/${encodeURIComponent(id)}/clear`,
                            })
                          }
                        >
                          Forget failures
                        </Button>
                      ) : null}
                    </Actions>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  );
}
