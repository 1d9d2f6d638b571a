import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useScope } from "../../lib/session.ts";
import { lifeOf } from "../../lib/balance-life.ts";
import { wordOf } from "../../lib/words.ts";
import { Columns, PageHead } from "../../ui/page.tsx";
import { change, count, countOf, duration, share, usd } from "../../lib/format.ts";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Awaiting, Empty, Loaded, Problem, Stale } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { latestQuery } from "../activity/latest.ts";
import { GenerationsTable } from "../activity/generations-table.tsx";
import { creditsQuery } from "../credits/api.ts";
import { sumOf, usageQuery, type Figure, type Usage } from "../usage/api.ts";
import { ProviderName } from "../provider-keys/provider-names.tsx";
import { firstKeyQuery, healthQuery } from "./api.ts";
import { SetUp } from "./set-up.tsx";
import { SpendBars } from "./spend-bars.tsx";
import controls from "../../ui/ui.module.css";

const days = 14;
const range = { range: `${days}d` };

/** Figures of the period before, in words; empty until both are known. */
const against = (figure: Figure, now: Usage | undefined, before: Usage | undefined): string =>
  now === undefined || before === undefined
    ? ""
    : change(sumOf(now.data, figure), sumOf(before.data, figure), `the ${days} days before`);

/** The figures of the workspace. Each appears as soon as it is read, in a place of its own. */
function Figures() {
  const credits = useQuery(creditsQuery);
  const now = useQuery(usageQuery({ range, group: "model" }));
  const before = useQuery(usageQuery({ range, before: true }));
  const rows = now.data?.data;
  const spend = rows === undefined ? undefined : sumOf(rows, "cost");
  const life = credits.data && lifeOf(credits.data, (spend ?? 0) / days);
  const unread = [
    ["The balance", credits],
    ["Spend and requests", now],
    ["The period before", before],
  ] as const;
  return (
    <>
      <Stats>
        <Stat
          name="Balance"
          value={usd(credits.data?.balance)}
          note={credits.data && `${usd(credits.data.today_cost)} today${life}`}
        />
        <Stat name="Spend" value={usd(spend)} note={against("cost", now.data, before.data)} />
        <Stat
          name="Requests"
          value={count(rows && sumOf(rows, "requests"))}
          note={against("requests", now.data, before.data)}
        />
        <Stat
          name="Failed"
          value={rows === undefined ? "–" : share(sumOf(rows, "errors"), sumOf(rows, "requests"))}
          note={rows === undefined ? "" : countOf(sumOf(rows, "errors"), "request")}
        />
      </Stats>
      {unread.map(([what, { data, error, refetch }]) =>
        data === undefined && error !== null ? (
          <Problem key={what} what={what} error={error} retry={() => void refetch()} />
        ) : null,
      )}
      <Stale queries={[credits, now, before]} />
    </>
  );
}

const healthKinds: Readonly<Record<string, "good" | "warning" | "bad">> = {
  healthy: "good",
  degraded: "warning",
  partial: "warning",
  down: "bad",
};

function Providers() {
  const health = useQuery(healthQuery);
  return (
    <Card title="Providers, last hour" flush>
      <Loaded query={health} height={160}>
        {({ components }) => {
          const providers = components.providers?.data?.providers ?? [];
          return providers.length === 0 ? (
            <Empty>No provider was asked within the last hour.</Empty>
          ) : (
            <Table
              rows={providers}
              rowKey={({ name }) => name}
              caption="Providers"
              columns={[
                {
                  head: "Provider",
                  phone: "title",
                  cell: ({ name }) => <ProviderName id={name} />,
                },
                {
                  head: "Latency",
                  number: true,
                  phone: "when",
                  cell: ({ latency_ms: latency }) => duration(latency),
                },
                {
                  head: "State",
                  phone: "figure",
                  cell: ({ status }) => (
                    <Status kind={healthKinds[status]}>{wordOf(status)}</Status>
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Card>
  );
}

/** The first page: what is left to set up, what is spent, what fails, and the last requests. */
export function OverviewPage() {
  const navigate = useNavigate();
  const usage = useQuery(usageQuery({ range, group: "model" }));
  const latest = useQuery(latestQuery);
  const mayMakeKeys = useScope("write:llm-keys");
  const keys = useQuery({ ...firstKeyQuery, enabled: mayMakeKeys });
  return (
    <>
      <PageHead title="Overview">
        {mayMakeKeys ? (
          <Link to="/keys" className={controls.button}>
            Create a key
          </Link>
        ) : null}
      </PageHead>
      <Figures />
      <Awaiting queries={[keys, latest]} />
      <SetUp
        hasKey={keys.data && keys.data.data.length > 0}
        hasRequest={latest.data && latest.data.data.length > 0}
      />
      <Columns>
        <Card title="Spend by model, last 14 days, UTC" flush>
          <Loaded query={usage} height={280}>
            {(read) =>
              read.data.length === 0 ? (
                <Empty>No request in the last {days} days.</Empty>
              ) : (
                <SpendBars
                  usage={read}
                  figure={sumOf(read.data, "cost") > 0 ? "cost" : "requests"}
                />
              )
            }
          </Loaded>
        </Card>
        <Providers />
      </Columns>
      <Card title="Latest requests" flush actions={<Link to="/activity">All activity</Link>}>
        <Loaded query={latest} height={240}>
          {({ data: rows }) =>
            rows.length === 0 ? (
              <Empty>
                No request yet. Send one from the <Link to="/playground">playground</Link>.
              </Empty>
            ) : (
              <GenerationsTable
                rows={rows}
                onOpen={(id) => void navigate({ to: "/activity", search: { id } })}
              />
            )
          }
        </Loaded>
      </Card>
      <Card title="Call it">
        <Code
          text={`curl ${location.origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n  -d '{"model":"service/auto","messages":[{"role":"user","content":"Hello"}]}'`}
        />
      </Card>
    </>
  );
}
