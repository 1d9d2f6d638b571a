import { type ReactNode, createContext, useContext } from "react";
import { count, duration, requestCost } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { zoneName } from "../../lib/time.ts";
import { Moment, Status } from "../../ui/values.tsx";
import { RowButton, Table, type Column } from "../../ui/table.tsx";
import type { Change } from "./api.ts";
import type { Generation } from "./latest.ts";
import style from "../../ui/ui.module.css";
import { ProviderName } from "../provider-keys/provider-names.tsx";

const kinds: Readonly<Record<string, "good" | "warning" | "bad">> = {
  failed: "bad",
  cut: "warning",
  cancelled: "warning",
};

/** Changes the filters of the list around; undefined where the list has none. */
const Filtering = createContext<Change | undefined>(undefined);

/**
 * The value of a cell, which a click makes a filter of its list. The tab key leads past it, so that
 * a row is one stop: the filter bar does the same by keyboard.
 */
function FilterBy({
  name,
  value,
  children,
}: {
  name: "model" | "provider" | "key_id" | "status";
  value: string | null;
  children: ReactNode;
}) {
  const filter = useContext(Filtering);
  return filter === undefined || !value ? (
    children
  ) : (
    <button
      type="button"
      tabIndex={-1}
      className={style.filterBy}
      title="Filter by this"
      onClick={() => filter({ [name]: value })}
    >
      {children}
    </button>
  );
}

/** The state of a request, as a word; with a colour where it is not the usual one. */
export const GenerationStatus = ({ status }: { status: string }) =>
  kinds[status] === undefined ? (
    <span>{wordOf(status)}</span>
  ) : (
    <Status kind={kinds[status]}>{wordOf(status)}</Status>
  );

/** What a fallback absorbed is amber, not red: its request was served. */
const ServedBy = ({ row: { provider_name: id, attempts, fallback } }: { row: Generation }) => (
  <>
    <FilterBy name="provider" value={id}>
      <ProviderName id={id} />
    </FilterBy>
    {fallback ? (
      <>
        {" "}
        <Status kind="warning">{`attempt ${attempts}`}</Status>
      </>
    ) : null}
  </>
);

/** A column that people may leave out, with the name under which their choice is kept. */
interface ChoosableColumn extends Column<Generation> {
  name: string;
}

const routeColumns: readonly ChoosableColumn[] = [
  {
    name: "model",
    head: "Model",
    phone: "title",
    cell: ({ model, requested_model: asked }) => (
      <>
        <FilterBy name="model" value={model}>
          <span className={style.line} title={model}>
            {model}
          </span>
        </FilterBy>
        {asked === model ? null : <span className={style.under}>asked {asked}</span>}
      </>
    ),
  },
  {
    name: "provider",
    head: "Provider",
    wide: true,
    cell: (row) => <ServedBy row={row} />,
  },
];
const outcomeColumns: readonly ChoosableColumn[] = [
  {
    name: "key",
    head: "Key",
    cell: ({ key_name: name, key_id: id, app_title: app }) => (
      <>
        <FilterBy name="key_id" value={id}>
          <span className={style.line} title={name ?? id}>
            {name ?? id}
          </span>
        </FilterBy>
        {app === null || app === name ? null : (
          <span className={style.under} title={app}>
            {app}
          </span>
        )}
      </>
    ),
  },
  {
    name: "status",
    head: "Status",
    phone: "state",
    cell: ({ status, error }) => (
      <>
        <FilterBy name="status" value={status}>
          <GenerationStatus status={status} />
        </FilterBy>
        {error === null ? null : <span className={style.under}>{wordOf(error.code)}</span>}
      </>
    ),
  },
  {
    name: "tokens",
    head: "Tokens in / out",
    number: true,
    cell: (row) => (
      <>
        {`${count(row.tokens_prompt)} / ${count(row.tokens_completion)}`}
        {row.tokens_cached === 0 ? null : (
          <span className={style.under}>{`${count(row.tokens_cached)} cached`}</span>
        )}
      </>
    ),
  },
  {
    name: "first_token",
    head: "First token",
    number: true,
    wide: true,
    cell: ({ latency }) => duration(latency),
  },
  { name: "total", head: "Total", number: true, cell: ({ total_time: total }) => duration(total) },
  {
    name: "cost",
    head: "Cost",
    number: true,
    phone: "figure",
    cell: ({ total_cost: cost }) => requestCost(cost),
  },
];

/** The columns that people choose from, in their order; the time always stands before them. */
export const choosableColumns: readonly Pick<ChoosableColumn, "name" | "head">[] = [
  ...routeColumns,
  ...outcomeColumns,
];

/**
 * Requests, newest first; with further columns before who asked, and without those hidden. Where
 * the list has filters, values of its cells can be clicked into them.
 */
export function GenerationsTable<Row extends Generation>({
  rows,
  openId,
  onOpen,
  onFilter,
  further = [],
  hidden = [],
}: {
  rows: readonly Row[];
  openId?: string | undefined;
  onOpen: (id: string) => void;
  onFilter?: Change;
  further?: readonly Column<Row>[];
  hidden?: readonly string[];
}) {
  const isShown = ({ name }: ChoosableColumn): boolean => !hidden.includes(name);
  return (
    <Filtering value={onFilter}>
      <Table
        rows={rows}
        rowKey={({ id }) => id}
        caption="Requests"
        columns={[
          {
            head: `Time, ${zoneName()}`,
            phone: "when",
            cell: ({ created_at: at, id }) => (
              <RowButton isOpen={id === openId} onClick={() => onOpen(id)}>
                <Moment at={at} />
              </RowButton>
            ),
          },
          ...routeColumns.filter(isShown),
          ...further,
          ...outcomeColumns.filter(isShown),
        ]}
      />
    </Filtering>
  );
}
