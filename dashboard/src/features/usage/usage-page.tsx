import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { PageHead } from "../../app/shell.tsx";
import { change, count, share, usd } from "../../lib/format.ts";
import { Actions, Card, Empty, Loaded, Select, Stat, Stats } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { type UsageGroup, type UsageRow, sumOf, usageQuery } from "./api.ts";
import { type Figure, UsageChart, chartOf } from "./usage-chart.tsx";

const route = getRouteApi("/usage");
const ranges = [["7", "Last 7 days, UTC"], ["14", "Last 14 days, UTC"], ["30", "Last 30 days, UTC"], ["90", "Last 90 days, UTC"]] as const;
const figures = [["cost", "Spend"], ["requests", "Requests"], ["tokens", "Tokens"], ["errors", "Errors"]] as const;
const groups = [["model", "by model"], ["provider", "by provider"], ["key", "by key"]] as const;

function csvOf(rows: readonly UsageRow[]): string {
  const columns = ["bucket", "model", "provider", "key_id", "requests", "errors", "tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "cost"] as const;
  const cell = (value: unknown): string => `"${String(value ?? "").replaceAll('"', '""')}"`;
  return [columns.join(","), ...rows.map((row) => columns.map((column) => cell(row[column])).join(","))].join("\n");
}

function download(rows: readonly UsageRow[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" }));
  link.download = "usage.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Spend, tokens, requests and errors over time, grouped, against the period before. */
export function UsagePage() {
  const { days: daysText = "14", group: groupText = "model" } = route.useSearch();
  const navigate = route.useNavigate();
  const [figure, setFigure] = useState<Figure>("cost");
  const days = Number(daysText);
  const group = groupText as UsageGroup;
  const now = useQuery(usageQuery({ days, group }));
  const before = useQuery(usageQuery({ days, daysAgo: days }));
  const old = before.data?.data ?? [];
  const set = (search: Record<string, string>): void => void navigate({ search: (was) => ({ ...was, ...search }), replace: true });
  return (
    <>
      <PageHead title="Usage">
        <Actions>
          <Select label="Figure" value={figure} options={figures} onChange={(value) => setFigure(value as Figure)} />
          <Select label="Group" value={group} options={groups} onChange={(value) => set({ group: value })} />
          <Select label="Range" value={daysText} options={ranges} onChange={(value) => set({ days: value })} />
        </Actions>
      </PageHead>
      <Loaded query={now} height={420}>
        {({ data: rows }) => rows.length === 0 ? <Card><Empty>No request in this range.</Empty></Card> : (
          <>
            <Stats>
              <Stat name="Spend" value={usd(sumOf(rows, "cost"))} note={change(sumOf(rows, "cost"), sumOf(old, "cost"))} />
              <Stat name="Requests" value={count(sumOf(rows, "requests"))} note={change(sumOf(rows, "requests"), sumOf(old, "requests"))} />
              <Stat name="Tokens" value={count(sumOf(rows, "tokens"))} note={change(sumOf(rows, "tokens"), sumOf(old, "tokens"))} />
              <Stat name="Failed" value={share(sumOf(rows, "errors"), sumOf(rows, "requests"))} note={`${count(sumOf(rows, "errors"))} requests`} />
              <Stat name="From cache" value={share(sumOf(rows, "cached_tokens"), sumOf(rows, "prompt_tokens"))} note="of input tokens" />
            </Stats>
            <Card title={figures.find(([key]) => key === figure)?.[1] ?? ""} flush
              actions={<button type="button" onClick={() => download(rows)}>Download CSV</button>}>
              <UsageChart rows={rows} group={group} figure={figure} />
            </Card>
            <Card title="Figures" flush>
              <Table rows={chartOf(rows, { group, figure }).series} rowKey={({ name }) => name} caption="Sums by group" columns={[
                { head: group === "key" ? "Key" : group === "model" ? "Model" : "Provider", cell: ({ name }) => <span className="mono">{name}</span> },
                { head: "Sum", number: true, cell: ({ total }) => (figure === "cost" ? usd(total) : count(total)) },
                { head: "Share", number: true, cell: ({ total }) => share(total, sumOf(rows, figure)) },
              ]} />
            </Card>
          </>
        )}
      </Loaded>
    </>
  );
}
