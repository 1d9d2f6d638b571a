import { zoneName } from "../../lib/time.ts";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Row } from "../../lib/api-types.ts";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { type List, request } from "../../lib/api.ts";
import { usd } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { wordsOf } from "../../lib/scope-words.ts";

type Connection = Row<"GET /connections">;

const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: () => request<List<Connection>>("/connections"),
});

/** Apps that hold a token: what they may do, what they spent, and how to end them. */
export function ConnectionsPage() {
  const mayEnd = useScope("write:connections");
  const queries = useQueryClient();
  const connections = useQuery(connectionsQuery);
  const [doomed, setDoomed] = useState<Connection>();
  const end = useMutation({
    meta: { done: "App disconnected" },
    mutationFn: (id: string) => request(`/connections/${id}`, { method: "DELETE" }),
    onSuccess: () => {
      setDoomed(undefined);
      return queries.invalidateQueries({ queryKey: ["connections"] });
    },
  });
  return (
    <>
      <PageHead title="Connected apps" />
      <Card flush>
        <Loaded query={connections} height={240}>
          {({ data: rows }) =>
            rows.length === 0 ? (
              <Empty action={<a href="/device">Enter a code</a>}>
                No app is connected. An app opens a page of this service to ask for access, or shows
                a code to enter here.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Connected apps"
                columns={[
                  {
                    head: "App",
                    phone: "title",
                    cell: ({ client, origin }) => (
                      <>
                        <Name>{client.name}</Name>
                        <span>{origin === "device" ? "by device code" : "in the browser"}</span>
                      </>
                    ),
                  },
                  {
                    head: "Can do",
                    phone: "note",
                    cell: ({ scopes }) => scopes.map(wordsOf).join(", "),
                  },
                  {
                    head: "Spent",
                    phone: "figure",
                    number: true,
                    cell: ({ usage, limit }) =>
                      limit === null ? usd(usage) : `${usd(usage)} of ${usd(limit)}`,
                  },
                  {
                    head: `Connected, ${zoneName()}`,
                    cell: ({ created_at: at, created_from: from }) => (
                      <>
                        <Moment at={at} /> from {from.address}
                      </>
                    ),
                  },
                  {
                    head: `Last used, ${zoneName()}`,
                    phone: "when",
                    cell: ({ last_used_at: at }) => <Moment at={at} never="never" />,
                  },
                  {
                    head: "Actions",
                    phone: "actions",
                    cell: (connection) =>
                      mayEnd ? (
                        <Button look="plain" onClick={() => setDoomed(connection)}>
                          Disconnect
                        </Button>
                      ) : null,
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      <Confirm
        title={`Disconnect ${doomed?.client.name ?? ""}`}
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        action="Disconnect app"
        work={end}
        onConfirm={() => doomed && end.mutate(doomed.id)}
      >
        <p>Its tokens end at once, on every gateway. What it spent stays in the records.</p>
      </Confirm>
    </>
  );
}
