import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { queryOf } from "../../lib/api.ts";
import { wordOf } from "../../lib/words.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { DownloadButton } from "../../ui/download-button.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { RowButton, Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { type AuditEntry, type AuditFilters, auditQuery } from "./api.ts";

const outcomes = { done: "good", refused: "warning", unknown: "bad" } as const;
const ranges = [
  ["", "All that is kept"],
  ["1", "Last day"],
  ["7", "Last 7 days"],
  ["30", "Last 30 days"],
] as const;
const dayMs = 86_400_000;

const actionsIn = (rows: readonly AuditEntry[]): [string, string][] =>
  [...new Map(rows.map(({ action, words }): [string, string] => [action, words]))].filter(
    ([action]) => /^[A-Z]+ \//.test(action),
  );

/** Who changed what, when and from where; narrowed, page by page, and as a table to keep. */
export function AuditLog() {
  const [filters, setFilters] = useState<AuditFilters>({});
  const [days, setDays] = useState("");
  const [known, setKnown] = useState<readonly [string, string][]>([]);
  const log = useInfiniteQuery(auditQuery(filters));
  const actions =
    known.length > 0 ? known : actionsIn(log.data?.pages.flatMap(({ data }) => data) ?? []);
  const set = (changes: AuditFilters): void => {
    if (known.length === 0) setKnown(actions);
    setFilters(
      Object.fromEntries(
        Object.entries({ ...filters, ...changes }).filter(
          ([, value]) => value !== undefined && value !== "",
        ),
      ),
    );
  };
  const choose = (value: string): void => {
    setDays(value);
    set({
      from: value === "" ? undefined : new Date(Date.now() - Number(value) * dayMs).toISOString(),
    });
  };
  return (
    <Card
      title="Audit log"
      flush
      actions={
        <DownloadButton
          path={`/security/audit${queryOf({ ...filters, format: "csv" })}`}
          name="audit.csv"
          label="Download CSV"
        />
      }
    >
      <div className={style.filters}>
        <Field label="Action">
          {(id) => (
            <Select
              id={id}
              value={filters.action ?? ""}
              options={[["", "Every action"], ...actions]}
              onChange={(action) => set({ action })}
            />
          )}
        </Field>
        <Field label="Since">
          {(id) => <Select id={id} value={days} options={ranges} onChange={choose} />}
        </Field>
        <Field label="Target id">
          {(id) => (
            <Input
              key={filters.target}
              id={id}
              defaultValue={filters.target}
              onBlur={(event) => set({ target: event.target.value.trim() })}
            />
          )}
        </Field>
      </div>
      <LoadedPages query={log} height={240}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty
              action={
                <Button
                  look="plain"
                  onClick={() => {
                    setDays("");
                    setFilters({});
                  }}
                >
                  Clear filters
                </Button>
              }
            >
              Nothing matches.
            </Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption="Audit log"
              columns={[
                {
                  head: `Time, ${zoneName()}`,
                  phone: "when",
                  cell: ({ at }) => <Moment at={at} />,
                },
                {
                  head: "Who",
                  phone: "figure",
                  cell: ({ actor }) => (
                    <>
                      <div>{actor.label}</div>
                      {actor.kind === "user" ? null : (
                        <span className={style.under}>{wordOf(actor.kind)}</span>
                      )}
                    </>
                  ),
                },
                {
                  head: "What",
                  phone: "title",
                  cell: ({ words, fields }) => (
                    <>
                      <div>{words}</div>
                      <span className={style.owner}>
                        {fields.map((field) => field.replaceAll("_", " ")).join(", ")}
                      </span>
                    </>
                  ),
                },
                {
                  head: "Target",
                  cell: ({ target }) =>
                    target === null ? (
                      "–"
                    ) : (
                      <RowButton onClick={() => set({ target })}>
                        <span className={style.line} title={target}>
                          <code>{target}</code>
                        </span>
                      </RowButton>
                    ),
                },
                { head: "From", wide: true, cell: ({ address }) => address },
                {
                  head: "Outcome",
                  phone: "state",
                  cell: ({ outcome }) => <Status kind={outcomes[outcome]}>{outcome}</Status>,
                },
              ]}
            />
          )
        }
      </LoadedPages>
    </Card>
  );
}
