import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useMemo } from "react";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { type List, request } from "../../lib/api.ts";
import { saveFile } from "../../lib/download.ts";
import { timeZone } from "../../lib/time.ts";
import { change, count, share, usd } from "../../lib/format.ts";
import {
  Actions,
  Awaiting,
  Button,
  Card,
  Empty,
  Loaded,
  Select,
  Skeleton,
  Stat,
  Stats,
  Field,
  Input,
} from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { keysQuery } from "../keys/api.ts";
import {
  type Figure,
  type Names,
  type PageGroup,
  type UsageRow,
  groupOf,
  hasZonedDays,
  limited,
  sumOf,
  totalsOf,
  usageQuery,
} from "./api.ts";

const UsageChart = lazy(async () => ({ default: (await import("./usage-chart.tsx")).UsageChart }));

const route = getRouteApi("/usage");
const ranges = [
  ["1h", "Last hour, UTC"],
  ["24h", "Last 24 hours, UTC"],
  ["7d", "Last 7 days, UTC"],
  ["14d", "Last 14 days, UTC"],
  ["30d", "Last 30 days, UTC"],
  ["90d", "Last 90 days, UTC"],
] as const;
const figures = [
  ["cost", "Spend"],
  ["requests", "Requests"],
  ["tokens", "Tokens"],
  ["errors", "Errors"],
] as const;
const groups = [
  ["model", "by model"],
  ["provider", "by provider"],
  ["key", "by key"],
  ["person", "by person"],
] as const;
const heads = { model: "Model", provider: "Provider", key: "Key", person: "Person" } as const;
/** How many groups have a row of their own; the others are summed. */
const limits = [
  ["10", "10 rows"],
  ["25", "25 rows"],
  ["100", "100 rows"],
] as const;
const columns = [
  "bucket",
  "model",
  "provider",
  "key_id",
  "requests",
  "errors",
  "tokens",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost",
] as const;

/** Text cells that a spreadsheet would take for a formula are kept from it. */
const cellOf = (value: unknown): string => {
  const text = String(value ?? "");
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
};

const csvOf = (rows: readonly UsageRow[]): string =>
  [
    columns.join(","),
    ...rows.map((row) => columns.map((column) => cellOf(row[column])).join(",")),
  ].join("\n");

const choiceOf = <Choice extends string>(
  choices: readonly (readonly [Choice, string])[],
  given: string | undefined,
): Choice | undefined => choices.find(([choice]) => choice === given)?.[0];

/**
 * Names of the keys, and of the people who made them, where the page groups by them and as far as
 * the session may read them.
 */
function useNames(grouped: readonly (PageGroup | undefined)[]): Names {
  const { data: session } = useSession();
  const seesKeys = useScope("read:llm-keys");
  const keys = useQuery({
    ...keysQuery,
    enabled: seesKeys && (grouped.includes("key") || grouped.includes("person")),
  });
  const organizationId = session?.workspace.organization_id ?? undefined;
  const members = useQuery({
    queryKey: ["members", organizationId, "names"],
    enabled: organizationId !== undefined && grouped.includes("person"),
    queryFn: () =>
      request<List<{ user_id: string; name: string }>>(`/organizations/${organizationId}/members`),
  });
  return useMemo(
    () => ({
      keys: new Map(
        (keys.data?.data ?? []).map(({ id, name, creator_user_id: person }) => [
          id,
          { name, person },
        ]),
      ),
      people: new Map((members.data?.data ?? []).map(({ user_id: id, name }) => [id, name])),
    }),
    [keys.data, members.data],
  );
}

function Sums({
  rows,
  before,
}: {
  rows: readonly UsageRow[];
  before: readonly UsageRow[] | undefined;
}) {
  const against = (figure: "cost" | "requests" | "tokens"): string =>
    before === undefined ? "" : change(sumOf(rows, figure), sumOf(before, figure));
  return (
    <Stats>
      <Stat name="Spend" value={usd(sumOf(rows, "cost"))} note={against("cost")} />
      <Stat name="Requests" value={count(sumOf(rows, "requests"))} note={against("requests")} />
      <Stat name="Tokens" value={count(sumOf(rows, "tokens"))} note={against("tokens")} />
      <Stat
        name="Failed"
        value={share(sumOf(rows, "errors"), sumOf(rows, "requests"))}
        note={`${count(sumOf(rows, "errors"))} requests`}
      />
      <Stat
        name="From cache"
        value={share(sumOf(rows, "cached_tokens"), sumOf(rows, "prompt_tokens"))}
        note="of input tokens"
      />
    </Stats>
  );
}

type SumRow = ReturnType<typeof limited>[number];

/** The same figures as the chart, each against the period before. */
function SumsTable({
  rows,
  before,
  figure,
  nameOf,
  head,
  limit,
}: {
  rows: readonly UsageRow[];
  before: readonly UsageRow[];
  /** How many groups have a row of their own. */
  limit: number;
  figure: Figure;
  nameOf: (row: UsageRow) => string;
  head: string;
}) {
  const totals = totalsOf(rows, { figure, nameOf });
  const earlier = totalsOf(before, { figure, nameOf });
  const named = [...totals.keys()].slice(0, limit);
  const others = [...earlier].reduce(
    (sum, [name, total]) => (named.includes(name) ? sum : sum + total),
    0,
  );
  const beforeOf = ([name, , isOther]: SumRow): number =>
    isOther ? others : (earlier.get(name) ?? 0);
  const shown = figure === "cost" ? usd : count;
  return (
    <Table
      rows={limited(totals, limit)}
      rowKey={([name]) => name}
      caption="Sums by group"
      columns={[
        {
          head,
          cell: ([name]) => <span className="mono">{name}</span>,
          sort: ([name]) => name,
        },
        {
          head: "Sum",
          number: true,
          cell: ([, total]) => shown(total),
          sort: ([, total]) => total,
        },
        { head: "Share", number: true, cell: ([, total]) => share(total, sumOf(rows, figure)) },
        {
          head: "Before",
          number: true,
          cell: (row) => shown(beforeOf(row)),
          sort: beforeOf,
        },
        {
          head: "Change",
          cell: (row) => change(row[1], beforeOf(row)),
          sort: (row) => row[1] - beforeOf(row),
        },
      ]}
    />
  );
}

/** Spend, tokens, requests and errors over time, grouped, against the period before. */
export function UsagePage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const figure = choiceOf(figures, search.figure) ?? "cost";
  const group = choiceOf(groups, search.group) ?? "model";
  const { range, from, to } = search;
  const apiGroup = group === "person" ? "key" : group;
  const second = choiceOf(groups, search.second);
  const limit = Number(choiceOf(limits, search.limit) ?? limits[0][0]);
  const isCumulative = search.sum === "up";
  const wanted = {
    range: { range, from, to },
    group: apiGroup,
    second: second === "person" ? ("key" as const) : second,
    local: search.days === "local",
  };
  const now = useQuery(usageQuery(wanted));
  const before = useQuery(usageQuery({ ...wanted, before: true }));
  const names = useNames([group, second]);
  const nameOf = useCallback(
    (row: UsageRow): string =>
      second === undefined || second === group
        ? groupOf(row, group, names)
        : `${groupOf(row, group, names)} · ${groupOf(row, second, names)}`,
    [group, second, names],
  );
  const set = (changed: Record<string, string | undefined>): void =>
    void navigate({ search: (was) => ({ ...was, ...changed }), replace: true });
  const rows = now.data?.data ?? [];
  const head = [group, second]
    .flatMap((each) => (each === undefined ? [] : heads[each]))
    .join(" · ");
  const tools = (
    <div className={style.range}>
      <OwnRange from={from} to={to} onChange={(own) => set({ range: undefined, ...own })} />
      <Actions>
        <Select
          label="Rows"
          value={String(limit)}
          options={limits}
          onChange={(value) => set({ limit: value })}
        />
        <Select
          label="Sums"
          value={isCumulative ? "up" : ""}
          options={[
            ["", "each for itself"],
            ["up", "added up over time"],
          ]}
          onChange={(value) => set({ sum: value || undefined })}
        />
        <Button look="plain" onClick={() => saveFile("usage.csv", csvOf(rows), "text/csv")}>
          Download CSV
        </Button>
        <Button
          look="plain"
          onClick={() => saveFile("usage.json", JSON.stringify(rows, null, 2), "application/json")}
        >
          Download JSON
        </Button>
      </Actions>
    </div>
  );
  return (
    <>
      <PageHead title="Usage">
        <Actions>
          <Select
            label="Figure"
            value={figure}
            options={figures}
            onChange={(value) => set({ figure: value })}
          />
          <Select
            label="Group"
            value={group}
            options={groups}
            onChange={(value) => set({ group: value })}
          />
          <Select
            label="Second group"
            value={second ?? ""}
            options={[["", "not divided"], ...groups.filter(([each]) => each !== group)]}
            onChange={(value) => set({ second: value || undefined })}
          />
          <Select
            label="Range"
            value={range ?? (from === undefined ? "14d" : "")}
            onChange={(value) => set({ range: value, from: undefined, to: undefined })}
            options={from === undefined ? ranges : [["", "Own range, UTC"], ...ranges]}
          />
          {hasZonedDays({ range, from, to }) ? (
            <Select
              label="Days"
              value={search.days ?? ""}
              options={[
                ["", "days in UTC"],
                ["local", `days in ${timeZone()}`],
              ]}
              onChange={(value) => set({ days: value || undefined })}
            />
          ) : null}
        </Actions>
      </PageHead>
      <Loaded query={now} height={420}>
        {(usage) =>
          usage.data.length === 0 ? (
            <>
              {tools}
              <Card>
                <Empty action={<Link to="/playground">Send one from the playground</Link>}>
                  No request in this range. Choose a longer one, or send a request.
                </Empty>
              </Card>
            </>
          ) : (
            <>
              <Awaiting queries={[before]} />
              <Sums rows={usage.data} before={before.data?.data} />
              {tools}
              <Card title={figures.find(([key]) => key === figure)?.[1] ?? ""} flush>
                <Suspense fallback={<Skeleton height={280} />}>
                  <UsageChart
                    usage={usage}
                    figure={figure}
                    nameOf={nameOf}
                    cumulative={isCumulative}
                  />
                </Suspense>
              </Card>
              <Card title="Figures" flush>
                <SumsTable
                  rows={usage.data}
                  before={before.data?.data ?? []}
                  figure={figure}
                  nameOf={nameOf}
                  head={head}
                  limit={limit}
                />
              </Card>
            </>
          )
        }
      </Loaded>
    </>
  );
}

/** Two UTC days between which everything is counted, the last one included. */
function OwnRange({
  from,
  to,
  onChange,
}: {
  from: string | undefined;
  to: string | undefined;
  onChange: (range: { from: string; to: string }) => void;
}) {
  const [first, last] = [
    from?.slice(0, 10) ?? "",
    to === undefined ? "" : new Date(Date.parse(to) - 1).toISOString().slice(0, 10),
  ];
  const take = (changed: { first?: string; last?: string }): void => {
    const [begin, end] = [
      changed.first ?? (first || changed.last),
      changed.last ?? (last || changed.first),
    ];
    if (!begin || !end || begin > end) return;
    onChange({
      from: `${begin}T00:00:00.000Z`,
      to: new Date(Date.parse(`${end}T00:00:00.000Z`) + 86_400_000).toISOString(),
    });
  };
  return (
    <>
      <Field label="From, UTC">
        {(id) => (
          <Input
            id={id}
            type="date"
            value={first}
            onChange={(event) => take({ first: event.target.value })}
          />
        )}
      </Field>
      <Field label="To, UTC">
        {(id) => (
          <Input
            id={id}
            type="date"
            value={last}
            onChange={(event) => take({ last: event.target.value })}
          />
        )}
      </Field>
    </>
  );
}
