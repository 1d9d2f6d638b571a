import { count, duration, localTime, requestCost, utc } from "../../lib/format.ts";
import { Status } from "../../ui/parts.tsx";
import { RowButton, Table } from "../../ui/table.tsx";
import type { Generation } from "./api.ts";

const kinds: Readonly<Record<string, "good" | "warning" | "bad">> = { failed: "bad", cut: "warning", cancelled: "warning" };

/** The state of a request, as a word. */
export const GenerationStatus = ({ status }: { status: string }) => <Status kind={kinds[status]}>{status}</Status>;

/** Requests, newest first. */
export function GenerationsTable({ rows, onOpen }: { rows: readonly Generation[]; onOpen: (id: string) => void }) {
  return (
    <Table rows={rows} rowKey={({ id }) => id} caption="Requests" columns={[
      { head: "Time", cell: ({ created_at: at, id }) => <RowButton onClick={() => onOpen(id)}><time dateTime={at} title={utc(at)}>{localTime(at)}</time></RowButton> },
      { head: "Model", cell: ({ model, requested_model: asked }) => <span className="mono">{model}{asked === model ? "" : ` (asked ${asked})`}</span> },
      { head: "Provider", cell: ({ provider_name: name }) => name ?? "–" },
      { head: "Status", cell: ({ status }) => <GenerationStatus status={status} /> },
      { head: "Tokens in / out", number: true, cell: (row) => `${count(row.tokens_prompt)} / ${count(row.tokens_completion)}` },
      { head: "First token", number: true, cell: ({ latency }) => duration(latency) },
      { head: "Total", number: true, cell: ({ total_time: total }) => duration(total) },
      { head: "Cost", number: true, cell: ({ total_cost: cost }) => requestCost(cost) },
    ]} />
  );
}
