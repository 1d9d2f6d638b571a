import { useQuery } from "@tanstack/react-query";
import { count, countOf, share } from "../../lib/format.ts";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Table } from "../../ui/table.tsx";
import { ProviderName } from "../provider-keys/provider-names.tsx";
import { type Errors, errorsQuery } from "./api.ts";
import { WorkspaceName } from "./workspace-name.tsx";

/** What errors are counted by: the title, the head of the column, and how its names are shown. */
const kinds = [
  ["providers", "Most errors by provider", "Provider", (id: string) => <ProviderName id={id} />],
  ["models", "Most errors by model", "Model", (id: string) => id],
  [
    "workspaces",
    "Most errors by workspace",
    "Workspace",
    (id: string) => <WorkspaceName id={id} />,
  ],
] as const;

type Row = Errors["providers" | "models" | "workspaces"][number];

const attemptsOf = (row: Row): string => ("failures" in row ? count(Number(row.failures)) : "–");

/** Where requests failed in the last week: the share of all, and the worst of each kind. */
export function Troubles() {
  const errors = useQuery(errorsQuery);
  return (
    <Loaded query={errors} height={320}>
      {({ requests, errors: failed, ...rows }) => (
        <>
          <Stats>
            <Stat
              name="Failed, 7 days"
              value={share(failed, requests)}
              note={`${count(failed)} of ${countOf(requests, "request")}`}
            />
          </Stats>
          {kinds.map(([kind, title, head, shown]) => (
            <Card key={kind} title={title} flush>
              {rows[kind].length === 0 ? (
                <Empty>No request failed in the last seven days.</Empty>
              ) : (
                <Table<Row>
                  rows={rows[kind]}
                  rowKey={({ id }) => id}
                  caption={title}
                  columns={[
                    { head, phone: "title", cell: ({ id }) => shown(id) },
                    {
                      head: "Failed",
                      number: true,
                      phone: "figure",
                      unit: "failed",
                      cell: (row) => share(row.errors, row.requests),
                    },
                    {
                      head: "Requests",
                      number: true,
                      phone: "when",
                      unit: "requests",
                      cell: (row) => `${count(row.errors)} of ${count(row.requests)}`,
                    },
                    ...(kind === "providers"
                      ? [{ head: "Failed attempts", number: true, cell: attemptsOf }]
                      : []),
                  ]}
                />
              )}
            </Card>
          ))}
        </>
      )}
    </Loaded>
  );
}
