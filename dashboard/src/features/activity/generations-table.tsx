import { count, duration, requestCost } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { zoneName } from "../../lib/time.ts";
import { Status, Button, Problem, Moment } from "../../ui/parts.tsx";
import { RowButton, Table, type Column } from "../../ui/table.tsx";
import type { Generation } from "./latest.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Check } from "../../ui/form.tsx";
import { Modal } from "../../ui/overlay.tsx";
import style from "../../ui/ui.module.css";
import { changePreferences, preferencesQuery } from "../account/preferences.ts";

const kinds: Readonly<Record<string, "good" | "warning" | "bad">> = {
  failed: "bad",
  cut: "warning",
  cancelled: "warning",
};

/** The state of a request, as a word; with a colour where it is not the usual one. */
export const GenerationStatus = ({ status }: { status: string }) =>
  kinds[status] === undefined ? (
    <span>{wordOf(status)}</span>
  ) : (
    <Status kind={kinds[status]}>{wordOf(status)}</Status>
  );

/** What a fallback absorbed is amber, not red: its request was served. */
const providerOf = ({ provider_name: name, attempts, fallback }: Generation) => (
  <>
    {name ?? "–"}
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
      <span className="mono">
        {model}
        {asked === model ? "" : ` (asked ${asked})`}
      </span>
    ),
  },
  { name: "provider", head: "Provider", wide: true, cell: providerOf },
];
const outcomeColumns: readonly ChoosableColumn[] = [
  {
    name: "key",
    head: "Key",
    cell: ({ key_name: name, key_id: id, app_title: app }) => (
      <>
        <span className={style.line} title={name ?? id}>
          {name ?? id}
        </span>
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
        <GenerationStatus status={status} />
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
const choosableColumns: readonly Pick<ChoosableColumn, "name" | "head">[] = [
  ...routeColumns,
  ...outcomeColumns,
];

/** Requests, newest first; with further columns before who asked, and without those hidden. */
export function GenerationsTable<Row extends Generation>({
  rows,
  onOpen,
  further = [],
  hidden = [],
}: {
  rows: readonly Row[];
  onOpen: (id: string) => void;
  further?: readonly Column<Row>[];
  hidden?: readonly string[];
}) {
  const isShown = ({ name }: ChoosableColumn): boolean => !hidden.includes(name);
  return (
    <Table
      rows={rows}
      rowKey={({ id }) => id}
      caption="Requests"
      columns={[
        {
          head: `Time, ${zoneName()}`,
          phone: "when",
          cell: ({ created_at: at, id }) => (
            <RowButton onClick={() => onOpen(id)}>
              <Moment at={at} />
            </RowButton>
          ),
        },
        ...routeColumns.filter(isShown),
        ...further,
        ...outcomeColumns.filter(isShown),
      ]}
    />
  );
}

/** The preference that has the names of the columns left out. */
const preference = "activity.hidden_columns";

/** Reads the columns that the person leaves out; undefined until they are known. */
export function useHiddenColumns(): readonly string[] | undefined {
  const { data, isPending } = useQuery(preferencesQuery);
  const hidden = data?.[preference];
  if (isPending) return undefined;
  return Array.isArray(hidden) ? hidden.filter((name) => typeof name === "string") : [];
}

/** Chooses the columns of the log, in every browser of the person. */
export function ColumnChoice({ hidden }: { hidden: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  const queries = useQueryClient();
  const keep = useMutation({
    // One after the other, so that the last choice is the one that is kept.
    scope: { id: preference },
    mutationFn: (names: readonly string[]) => changePreferences({ [preference]: names }),
    onMutate: (names) =>
      queries.setQueryData(
        preferencesQuery.queryKey,
        (kept) => kept && { ...kept, [preference]: names },
      ),
    onSuccess: (kept) =>
      queries.setQueryData(preferencesQuery.queryKey, (before) => before ?? kept),
    onError: () => queries.invalidateQueries({ queryKey: preferencesQuery.queryKey }),
  });
  return (
    <>
      <Button look="plain" className={style.notOnPhone} onClick={() => setOpen(true)}>
        Columns
      </Button>
      <Modal title="Columns" open={isOpen} onClose={() => setOpen(false)}>
        {choosableColumns.map(({ name, head }) => (
          <Check
            key={name}
            label={head}
            checked={!hidden.includes(name)}
            onChange={(isShown) =>
              keep.mutate(isShown ? hidden.filter((each) => each !== name) : [...hidden, name])
            }
          />
        ))}
        {keep.error === null ? null : <Problem error={keep.error} />}
      </Modal>
    </>
  );
}
