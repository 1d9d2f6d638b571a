import { useQuery } from "@tanstack/react-query";
import { count, share, usd } from "../../lib/format.ts";
import type { RangeSearch } from "../../lib/time.ts";
import { quantityOf } from "../../lib/usage-parts.ts";
import { wordOf } from "../../lib/words.ts";
import { Card, Empty, Loaded, Moment } from "../../ui/parts.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { type UsagePart, partsQuery } from "./api.ts";

const columnsOf = (whole: number): readonly Column<UsagePart>[] => [
  { head: "Part", phone: "title", cell: ({ part }) => wordOf(part) },
  {
    head: "Quantity",
    number: true,
    phone: "when",
    cell: ({ part, quantity }) => quantityOf(part, quantity),
  },
  { head: "Requests", number: true, cell: ({ requests }) => count(requests) },
  { head: "Spend", number: true, phone: "figure", cell: ({ cost }) => usd(cost) },
  {
    head: "Share of spend",
    phone: "state",
    unit: "of spend",
    number: true,
    cell: ({ cost }) => share(cost, whole),
  },
];

/** What was used over a range, by disjoint part: text, cached text, pictures, sound, characters. */
export function UsageParts({ range }: { range: RangeSearch }) {
  const parts = useQuery(partsQuery(range));
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
                rowKey={({ part }) => part}
                caption="Usage by part"
                columns={columnsOf(rows.reduce((sum, { cost }) => sum + cost, 0))}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}
