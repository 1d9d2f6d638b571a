import { useQuery } from "@tanstack/react-query";
import { count, countOf, share, usd } from "../../lib/format.ts";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Table } from "../../ui/table.tsx";
import { ProviderName } from "../provider-keys/provider-names.tsx";
import { SpendBars } from "../overview/spend-bars.tsx";
import { type Usage, sumOf, totalsOf } from "../usage/api.ts";
import { type ServiceUsage, serviceUsageQuery, usageOfQuery } from "./api.ts";

const modelOf = ({ model }: { model?: string }): string => model ?? "unknown";

/** What a workspace, or the keys of a person, were used for: figures, a chart and a table. */
export function UsageCard({ kind, id }: { kind: "workspaces" | "users"; id: string }) {
  const usage = useQuery(usageOfQuery(kind, id));
  return (
    <Loaded query={usage} height={420}>
      {(read) =>
        read.data.length === 0 ? (
          <Card title="Last 30 days, UTC">
            <Empty>No request in the last 30 days.</Empty>
          </Card>
        ) : (
          <>
            <Stats>
              <Stat name="Spend, 30 days" value={usd(sumOf(read.data, "cost"))} note="" />
              <Stat name="Requests" value={count(sumOf(read.data, "requests"))} note="" />
              <Stat name="Tokens" value={count(sumOf(read.data, "tokens"))} note="" />
              <Stat
                name="Failed"
                value={share(sumOf(read.data, "errors"), sumOf(read.data, "requests"))}
                note={countOf(sumOf(read.data, "errors"), "request")}
              />
            </Stats>
            <Bars usage={read} />
            <ByModel usage={read} />
          </>
        )
      }
    </Loaded>
  );
}

const Bars = ({ usage }: { usage: Usage }) => {
  const figure = sumOf(usage.data, "cost") > 0 ? "cost" : "requests";
  return (
    <Card title={`${figure === "cost" ? "Spend" : "Requests"} by model, last 30 days, UTC`} flush>
      <SpendBars usage={usage} figure={figure} />
    </Card>
  );
};

function ByModel({ usage: { data } }: { usage: Usage }) {
  const requests = totalsOf(data, { figure: "requests", nameOf: modelOf });
  const errors = totalsOf(data, { figure: "errors", nameOf: modelOf });
  return (
    <Card title="By model" flush>
      <Table
        rows={[...totalsOf(data, { figure: "cost", nameOf: modelOf })]}
        rowKey={([name]) => name}
        caption="Usage by model"
        columns={[
          {
            head: "Model",
            phone: "title",
            cell: ([name]) => name,
            sort: ([name]) => name,
          },
          {
            head: "Spend",
            number: true,
            phone: "figure",
            cell: ([, cost]) => usd(cost),
            sort: ([, cost]) => cost,
          },
          {
            head: "Requests",
            number: true,
            phone: "when",
            cell: ([name]) => count(requests.get(name)),
            sort: ([name]) => requests.get(name) ?? 0,
          },
          {
            head: "Failed",
            number: true,
            phone: "state",
            cell: ([name]) => share(errors.get(name) ?? 0, requests.get(name) ?? 0),
          },
        ]}
      />
    </Card>
  );
}

/** The days of the whole service as rows of usage, so that they are drawn as those of a workspace. */
const asUsage = ({ from, to, data }: ServiceUsage): Usage => ({
  from: `${from}T00:00:00.000Z`,
  to: new Date(Date.parse(`${to}T00:00:00.000Z`) + 86_400_000).toISOString(),
  interval: "day",
  time_zone: "UTC",
  counted_from: null,
  data: data.map(
    ({ id, prompt_tokens: prompt = 0, completion_tokens: completion = 0, ...row }) => ({
      bucket: `${id}T00:00:00.000Z`,
      model: "all models",
      prompt_tokens: prompt,
      completion_tokens: completion,
      tokens: prompt + completion,
      cached_tokens: 0,
      reasoning_tokens: 0,
      ...row,
    }),
  ),
});

/** The requests of the whole service by day, and the shares of its providers. */
export function ServiceUsageCards() {
  const days = useQuery(serviceUsageQuery("day"));
  const providers = useQuery(serviceUsageQuery("provider"));
  return (
    <>
      <Card title="Requests a day, last 30 days, UTC" flush>
        <Loaded query={days} height={280}>
          {(read) =>
            read.data.length === 0 ? (
              <Empty>No request in the last 30 days.</Empty>
            ) : (
              <SpendBars usage={asUsage(read)} figure="requests" />
            )
          }
        </Loaded>
      </Card>
      <Card title="Providers, last 30 days" flush>
        <Loaded query={providers} height={200}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty>No provider was asked in the last 30 days.</Empty>
            ) : (
              <ByProvider rows={data} />
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

const ByProvider = ({ rows }: { rows: ServiceUsage["data"] }) => (
  <Table
    rows={rows.toSorted((one, other) => other.requests - one.requests)}
    rowKey={({ id }) => id}
    caption="Usage by provider"
    columns={[
      {
        head: "Provider",
        phone: "title",
        cell: ({ id }) => <ProviderName id={id} />,
        sort: ({ id }) => id,
      },
      {
        head: "Charged",
        number: true,
        phone: "figure",
        cell: ({ cost }) => usd(cost),
        sort: ({ cost }) => cost,
      },
      {
        head: "Requests",
        number: true,
        phone: "when",
        unit: "requests",
        cell: ({ requests }) => count(requests),
        sort: ({ requests }) => requests,
      },
      {
        head: "Failed attempts",
        number: true,
        phone: "state",
        unit: "failed",
        cell: ({ failures = 0, attempts = 0 }) => share(failures, attempts),
        sort: ({ failures = 0, attempts = 0 }) => (attempts === 0 ? 0 : failures / attempts),
      },
    ]}
  />
);
