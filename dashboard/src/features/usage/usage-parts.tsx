import { useQuery } from "@tanstack/react-query";
import { count, share, usd } from "../../lib/format.ts";
import type { RangeSearch } from "../../lib/time.ts";
import { quantityOf } from "../../lib/usage-parts.ts";
import { wordOf } from "../../lib/words.ts";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { type Division, type Names, type UsagePart, partsQuery } from "./api.ts";
import { useNames } from "./use-names.ts";

/** The model, provider or key of a line, by its name. */
const groupNameOf = (row: UsagePart, division: Division, names: Names): string =>
  division === "model"
    ? (row.model ?? "unknown")
    : division === "provider"
      ? names.providers.get(row.provider ?? "") || row.provider || "none"
      : (names.keys.get(row.key_id ?? "") ?? row.key_id ?? "unknown");

const columnsOf = (
  whole: number,
  division: Division | undefined,
  names: Names,
): readonly Column<UsagePart>[] => [
  {
    head: "Part",
    phone: "title",
    cell: (row) => (
      <>
        {wordOf(row.part)}
        {division === undefined ? null : (
          <span className={style.under}>{groupNameOf(row, division, names)}</span>
        )}
      </>
    ),
    sort: ({ part }) => wordOf(part),
  },
  {
    head: "Quantity",
    number: true,
    phone: "when",
    cell: ({ part, quantity }) => quantityOf(part, quantity),
  },
  {
    head: "Requests",
    number: true,
    cell: ({ requests }) => count(requests),
    sort: ({ requests }) => requests,
  },
  {
    head: "Spend",
    number: true,
    phone: "figure",
    cell: ({ cost }) => usd(cost),
    sort: ({ cost }) => cost,
  },
  {
    head: "Share of spend",
    phone: "state",
    unit: "of spend",
    number: true,
    cell: ({ cost }) => share(cost, whole),
  },
];

/**
 * What was used over a range, by disjoint part: text, cached text, pictures, sound, characters; each
 * by model, provider or key where that is asked.
 */
export function UsageParts({
  range,
  division,
}: {
  range: RangeSearch;
  division: Division | undefined;
}) {
  const parts = useQuery(partsQuery(range, division));
  const names = useNames([division]);
  return (
    <Card title="By part" flush>
      <Loaded query={parts} height={320}>
        {({ data: rows, counted_from: from }) =>
          rows.length === 0 ? (
            <Empty>No request in this range used anything. Choose a longer one.</Empty>
          ) : (
            <>
              {from === null ? null : (
                <p className={style.cardBody}>
                  Counted from the newest 60,000 requests, which begin at <Moment at={from} />.
                </p>
              )}
              <Table
                rows={rows}
                rowKey={(row) => [row.part, row.model, row.provider, row.key_id].join(" ")}
                caption="Usage by part"
                columns={columnsOf(
                  rows.reduce((sum, { cost }) => sum + cost, 0),
                  division,
                  names,
                )}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}
