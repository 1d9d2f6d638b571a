import { useQuery } from "@tanstack/react-query";
import { count, localTime, utc } from "../../lib/format.ts";
import { Awaiting, Card, Problem, Stale, Status } from "../../ui/parts.tsx";
import { RowButton, Table } from "../../ui/table.tsx";
import { type ActivityFilters, failuresQuery } from "./api.ts";

const reasons: Readonly<Record<number, string>> = {
  402: "for want of credits or budget",
  429: "by a rate limit",
};

/**
 * What failed, by code, provider and model, and how many were refused before any provider was
 * asked; absent where nothing was.
 */
export function FailuresCard({
  filters,
  onFilter,
}: {
  filters: ActivityFilters;
  onFilter: (change: Record<string, string | undefined>) => void;
}) {
  const query = useQuery(failuresQuery(filters));
  const failures = query.data;
  if (failures === undefined)
    return query.error === null ? (
      <Awaiting queries={[query]} />
    ) : (
      <Card title="What failed">
        <Problem error={query.error} retry={() => void query.refetch()} />
      </Card>
    );
  if (failures.data.length === 0 && failures.refused.length === 0) return null;
  const refused = new Map<number, number>();
  for (const { http_status: status, requests } of failures.refused)
    refused.set(status, (refused.get(status) ?? 0) + requests);
  return (
    <Card title="What failed" flush>
      <Stale queries={[query]} />
      {failures.data.length === 0 ? null : (
        <Table
          rows={failures.data}
          rowKey={({ status, code, provider, model }) => `${status} ${code} ${provider} ${model}`}
          caption="Failures"
          columns={[
            {
              head: "Provider",
              cell: ({ provider, status, code }) => (
                <RowButton
                  onClick={() =>
                    onFilter({ provider: provider ?? undefined, status, error: code ?? undefined })
                  }
                >
                  {provider ?? "none was asked"}
                </RowButton>
              ),
            },
            { head: "Model", cell: ({ model }) => <span className="mono">{model}</span> },
            {
              head: "What",
              cell: ({ status, code, http_status: http }) => (
                <Status kind={status === "failed" ? "bad" : "warning"}>
                  {[status, code, http].filter((part) => part !== null).join(", ")}
                </Status>
              ),
            },
            { head: "Requests", number: true, cell: ({ requests }) => count(requests) },
            {
              head: "Last",
              cell: ({ last_at: at }) => (
                <time dateTime={at} title={utc(at)}>
                  {localTime(at)}
                </time>
              ),
            },
          ]}
        />
      )}
      {refused.size === 0 ? null : (
        <ul>
          {[...refused].map(([status, requests]) => (
            <li key={status}>
              {count(requests)} refused with {status} {reasons[status] ?? ""}; they leave no record.
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
