import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Suspense, lazy } from "react";
import { useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { count, countOf, share, usd } from "../../lib/format.ts";
import { Card, Facts, Stat, Stats } from "../../ui/card.tsx";
import { Empty, Loaded, Problem, Skeleton } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { wordOf } from "../../lib/words.ts";
import { Sections } from "../../ui/sections.tsx";
import { Table } from "../../ui/table.tsx";
import { type Overview, overviewQuery, plansQuery, settingsQuery } from "./api.ts";
import { ProviderName } from "../provider-keys/provider-names.tsx";
import { People } from "./people.tsx";
import { Requests } from "./requests.tsx";
import { PersonPage, WorkspacePage } from "./subject-pages.tsx";
import { ServiceUsageCards } from "./usage-card.tsx";
import { Upstreams } from "./upstreams.tsx";
import { Troubles } from "./troubles.tsx";
import { WorkspaceName } from "./workspace-name.tsx";
import { Workspaces } from "./workspaces.tsx";

// Loaded with its section: the others only read.
const Configuration = lazy(async () => ({
  default: (await import("./configuration/configuration.tsx")).Configuration,
}));
const Incidents = lazy(async () => ({ default: (await import("./incidents.tsx")).Incidents }));

const route = getRouteApi("/operator");

function Glance() {
  const overview = useQuery(overviewQuery);
  return (
    <Loaded query={overview} height={320}>
      {({
        version,
        status,
        users,
        workspaces,
        upstreams,
        usage,
        today,
        uncollected,
        passed_caps: passed,
      }) => (
        <>
          <Stats>
            <Stat name="Service" value={wordOf(status)} note={`version ${version}`} />
            <Stat
              name="Requests, 30 days"
              value={count(usage.requests)}
              note={`${count(today.requests)} today`}
            />
            <Stat
              name="Failed"
              value={share(usage.errors, usage.requests)}
              note={countOf(usage.errors, "request")}
            />
            <Stat
              name="Charged, 30 days"
              value={usd(usage.cost)}
              note={`${usd(today.cost)} today`}
            />
            <Stat
              name="Providers"
              value={count(upstreams.routed)}
              note={`${count(upstreams.in_trouble)} in trouble`}
            />
          </Stats>
          <ServiceUsageCards />
          <Card title="People and workspaces">
            <Facts
              rows={[
                ["People", `${count(users.total)}, ${count(users.blocked)} blocked`],
                ["Operators", count(users.operators)],
                ["Workspaces", `${count(workspaces.total)}, ${count(workspaces.blocked)} blocked`],
                ["Organisations", count(workspaces.organizations)],
              ]}
            />
          </Card>
          <Card title="Delivered and not collected, 30 days" flush>
            {uncollected.data.length === 0 ? (
              <Empty>Everything that was delivered was charged.</Empty>
            ) : (
              <Table
                rows={uncollected.data}
                rowKey={({ workspace_id: id, model }) => `${id} ${model}`}
                caption="Uncollected"
                columns={[
                  {
                    head: "Workspace",
                    phone: "title",
                    cell: ({ workspace_id: id }) => <WorkspaceName id={id} />,
                  },
                  {
                    head: "Model",
                    phone: "when",
                    cell: ({ model }) => model,
                  },
                  { head: "Requests", number: true, cell: ({ requests }) => count(requests) },
                  { head: "Cost", number: true, phone: "figure", cell: ({ cost }) => usd(cost) },
                ]}
              />
            )}
          </Card>
          {passed.length > 0 && <PassedCaps lines={passed} />}
        </>
      )}
    </Loaded>
  );
}

/** Providers that generated more than the output cap that they were sent. */
function PassedCaps({ lines }: { lines: Overview["passed_caps"] }) {
  return (
    <Card title="Providers that passed their output cap, 30 days" flush>
      <Table
        rows={lines}
        rowKey={({ provider }) => provider}
        caption="Passed caps"
        columns={[
          {
            head: "Provider",
            phone: "title",
            cell: ({ provider }) => <ProviderName id={provider} />,
          },
          {
            head: "Requests",
            number: true,
            phone: "when",
            unit: "requests",
            cell: ({ requests }) => count(requests),
          },
          {
            head: "Tokens past it",
            number: true,
            phone: "state",
            unit: "tokens past it",
            cell: ({ tokens }) => count(tokens),
          },
          { head: "Cost", number: true, phone: "figure", cell: ({ cost }) => usd(cost) },
        ]}
      />
    </Card>
  );
}

function Plans() {
  const plans = useQuery(plansQuery);
  return (
    <Card title="Plans, as the configuration has them" flush>
      <Loaded query={plans} height={240}>
        {({ data }) => (
          <Table
            rows={data}
            rowKey={({ id }) => id}
            caption="Plans"
            columns={[
              { head: "Plan", phone: "title", cell: ({ id }) => id },
              {
                head: "Requests a minute",
                number: true,
                phone: "when",
                unit: "requests a minute",
                cell: ({ requests_per_minute: rate }) => count(rate),
              },
              {
                head: "In 5 hours",
                number: true,
                cell: ({ five_hour_requests: most }) => (most === null ? "no cap" : count(most)),
              },
              {
                head: "Credits a month",
                number: true,
                phone: "figure",
                unit: "a month",
                cell: ({ monthly_credits: credits }) => usd(credits),
              },
              {
                head: "Workspaces",
                number: true,
                phone: "state",
                unit: ({ workspaces }) => (workspaces === 1 ? "workspace" : "workspaces"),
                cell: ({ workspaces }) => count(workspaces),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function Settings() {
  const settings = useQuery(settingsQuery);
  return (
    <Card title="Settings in force, as they were read at the start" flush>
      <Loaded query={settings} height={480}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>This gateway was started without a configuration.</Empty>
          ) : (
            <Table
              rows={data}
              rowKey={({ key }) => key}
              caption="Settings"
              columns={[
                { head: "Setting", phone: "title", cell: ({ key }) => <code>{key}</code> },
                { head: "Value", phone: "when", cell: ({ value }) => value },
                {
                  head: "From",
                  phone: "state",
                  cell: ({ source }) => (
                    <Status kind={source === "default" ? undefined : "good"}>{source}</Status>
                  ),
                },
                {
                  head: "Variable",
                  cell: ({ variable }) => (variable === null ? "–" : <code>{variable}</code>),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  );
}

const sections = [
  ["glance", "At a glance"],
  ["workspaces", "Workspaces"],
  ["people", "People"],
  ["plans", "Plans"],
  ["requests", "Requests"],
  ["providers", "Providers"],
  ["configuration", "Configuration"],
  ["incidents", "Incidents"],
  ["errors", "Errors"],
  ["settings", "Settings"],
] as const;

/** The installation: who is on it, what it costs, what fails, and how it is set up. */
export function OperatorPage() {
  const { group, q, id } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: session } = useSession();
  const shown = sections.find(([id]) => id === group)?.[0] ?? "glance";
  const search = (text: string): void =>
    void navigate({ search: (before) => ({ ...before, q: text || undefined }), replace: true });
  if (session?.user.operator !== true) {
    return (
      <>
        <PageHead title="Operator" />
        {session === undefined ? (
          <Skeleton height={320} />
        ) : (
          <Problem error={new Error("Only operators of this installation may open this page.")} />
        )}
      </>
    );
  }
  return (
    <>
      <PageHead title="Operator" />
      <Sections
        sections={sections}
        shown={shown}
        onChoose={(id) => void navigate({ search: { group: id } })}
      />
      {shown === "glance" ? <Glance /> : null}
      {shown === "workspaces" && id === undefined ? (
        <Workspaces search={q} onSearch={search} />
      ) : null}
      {shown === "people" && id === undefined ? <People search={q} onSearch={search} /> : null}
      {id !== undefined && shown === "workspaces" ? <WorkspacePage id={id} /> : null}
      {id !== undefined && shown === "people" ? <PersonPage id={id} /> : null}
      {shown === "plans" ? <Plans /> : null}
      {shown === "requests" ? <Requests /> : null}
      {shown === "providers" ? <Upstreams /> : null}
      {shown === "configuration" ? (
        <Suspense fallback={<Skeleton height={320} />}>
          <Configuration />
        </Suspense>
      ) : null}
      {shown === "incidents" ? (
        <Suspense fallback={<Skeleton height={320} />}>
          <Incidents />
        </Suspense>
      ) : null}
      {shown === "errors" ? <Troubles /> : null}
      {shown === "settings" ? <Settings /> : null}
    </>
  );
}
