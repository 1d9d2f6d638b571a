import { type ReactNode, useState } from "react";
import style from "./ui.module.css";

/** A column of a table: its head and what a row shows there. */
export interface Column<Row> {
  head: string;
  cell: (row: Row) => ReactNode;
  /** Figures stand right. */
  number?: boolean;
  /** Is left out on windows that are narrower than a usual laptop's. */
  wide?: boolean;
  /** Is left out on tablets alone, whose windows are 768 to 1023 pixels wide. */
  offTablet?: boolean;
  /** What the rows may be sorted by; a column without it does not sort. */
  sort?: (row: Row) => string | number;
  /**
   * The place of the cell in a row of two lines on phones, with what can be done beside both, and a note of any length below them;
   * columns without a place are not shown there. Only where one column of the table has a place.
   */
  phone?: "title" | "figure" | "when" | "state" | "note" | "actions";
  /** What the value says, in a word: shown before it on phones, where no head says it. */
  lead?: string;
  /** What the figure counts, in a word: shown after it on phones, where no head says it. */
  unit?: string | ((row: Row) => string | undefined);
}

/** A column that rows are sorted by, and in which direction. */
interface Sorting {
  head: string;
  descending: boolean;
}

function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sorting: Sorting | undefined,
): readonly Row[] {
  const keyOf = columns.find(({ head }) => head === sorting?.head)?.sort;
  if (keyOf === undefined || sorting === undefined) return rows;
  const sign = sorting.descending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [left, right] = [keyOf(one), keyOf(other)];
    return (
      sign *
      (typeof left === "number" && typeof right === "number"
        ? left - right
        : String(left).localeCompare(String(right)))
    );
  });
}

/** A head that sorts its table: figures from the largest, texts from A. */
function SortHead<Row>({
  column,
  sorting,
  onSort,
}: {
  column: Column<Row>;
  sorting: Sorting | undefined;
  onSort: (sorting: Sorting) => void;
}) {
  const isSorted = sorting?.head === column.head;
  const descending = isSorted ? !sorting.descending : column.number === true;
  return (
    <button
      type="button"
      className={style.sortHead}
      onClick={() => onSort({ head: column.head, descending })}
    >
      {column.head}
      <span aria-hidden="true">{isSorted ? (sorting.descending ? " ↓" : " ↑") : ""}</span>
    </button>
  );
}

/**
 * A table. On a phone each row is a card with labels, or has two lines where columns say their
 * place; `compact` tables, of few short columns, stay tables.
 */
export function Table<Row>({
  rows,
  columns,
  rowKey,
  caption,
  compact = false,
  even = false,
}: {
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  caption: string;
  compact?: boolean;
  /** Makes all columns as wide, so that those of tables below one another stand in line. */
  even?: boolean;
}) {
  const [sorting, setSorting] = useState<Sorting>();
  const hasPlaces = columns.some(({ phone }) => phone !== undefined);
  const onPhone = compact ? "" : hasPlaces ? style.lines : style.cards;
  const className = ({ number, wide, offTablet }: Column<Row>): string =>
    [number && style.number, wide && style.wide, offTablet && style.offTablet]
      .filter(Boolean)
      .join(" ");
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolled region, not a group of fields.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it (axe, scrollable-region-focusable).
    <div className={style.tableWrap} tabIndex={0} role="group" aria-label={caption}>
      <table className={`${style.table} ${onPhone} ${even ? style.even : ""}`}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.head}
                scope="col"
                data-phone={column.phone}
                className={className(column)}
                aria-sort={
                  sorting?.head === column.head
                    ? sorting.descending
                      ? "descending"
                      : "ascending"
                    : undefined
                }
              >
                {column.sort === undefined ? (
                  column.head
                ) : (
                  <SortHead column={column} sorting={sorting} onSort={setSorting} />
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(rows, columns, sorting).map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td
                  key={column.head}
                  data-label={column.head}
                  data-phone={column.phone}
                  data-lead={column.lead}
                  data-unit={typeof column.unit === "function" ? column.unit(row) : column.unit}
                  className={className(column)}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A cell that opens what its row is about, and says whether that is open. */
export function RowButton({
  onClick,
  isOpen = false,
  children,
}: {
  onClick: () => void;
  isOpen?: boolean;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      className={style.rowButton}
      aria-current={isOpen || undefined}
      onClick={onClick}
    >
      {children}
    </button>
  );
}
