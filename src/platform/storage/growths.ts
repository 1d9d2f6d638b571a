import type { AddStatement, SqlValue } from "./commit-queue.ts";
import { mergeAdd, type MergedAdd, type MergedUnits } from "./merge-units.ts";

/**
 * The sums that the commits of one release grow. Growths name a sum by its index among them, so
 * that another release reads them with the statements that they were written with.
 */
export interface GrowthFormat {
  id: string;
  adds: readonly AddStatement[];
}

/** Returns the format of a release's statements; the same statements have the same id. */
export const growthFormatOf = (adds: readonly AddStatement[]): GrowthFormat => ({
  id: Bun.hash(JSON.stringify(adds)).toString(16),
  adds,
});

/** Returns the statements in the form of `commit_formats`. */
export const formatText = ({ adds }: GrowthFormat): string =>
  JSON.stringify(
    adds.map(({ name, table, keyColumns, sumColumns }) => ({
      name,
      table,
      keyColumns,
      sumColumns,
    })),
  );

/**
 * Returns a commit's growth as one JSON text: for each sum its rows of key and growth. Numbers
 * beyond 2^53 are text.
 */
export function growthText(
  adds: MergedUnits["adds"],
  rowsJson: (rows: readonly (readonly unknown[])[]) => string = JSON.stringify,
): string {
  const parts: string[] = [];
  adds.forEach((additions, index) => {
    const rows = [...additions.values()].map(rowOf);
    if (rows.length > 0) parts.push(`"${index}":${rowsJson(rows)}`);
  });
  return `{${parts.join(",")}}`;
}

/** Returns one row of key and growth, in a form that JSON can represent. */
export const rowOf = ({ key, sums }: MergedAdd): unknown[] => [
  ...key,
  ...sums.map((sum) => (typeof sum === "bigint" ? sum.toString() : sum)),
];

/** Adds up the growth of several commits, from their texts. */
export function readGrowths(
  texts: Iterable<string>,
  { adds }: Pick<GrowthFormat, "adds">,
): MergedUnits["adds"] {
  const total: MergedUnits["adds"] = [];
  for (const text of texts) {
    for (const [index, rows] of Object.entries(JSON.parse(text) as Record<string, SqlValue[][]>)) {
      const keyCount = adds[Number(index)]?.keyColumns.length ?? 0;
      const into = (total[Number(index)] ??= new Map());
      for (const row of rows) {
        const sums = row
          .slice(keyCount)
          .map((sum) => (typeof sum === "string" ? BigInt(sum) : (sum ?? 0)));
        mergeAdd(into, row.slice(0, keyCount), sums);
      }
    }
  }
  return total;
}

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

/** Returns what is committed and not folded yet, by table: key columns and growth by name. */
export type UnfoldedSums = (table: string) => readonly Record<string, SqlValue | bigint>[];

/** Reads the growth of commits that the sums of a database do not contain yet. */
export async function readUnfolded(query: Query): Promise<UnfoldedSums> {
  const rows = await query(
    "select growths, sums from commit_growths inner join commit_formats on commit_formats.id = format",
  );
  const byTable = new Map<string, Record<string, SqlValue | bigint>[]>();
  for (const { growths, sums } of rows) {
    const adds = JSON.parse(String(sums)) as AddStatement[];
    const text = typeof growths === "string" ? growths : JSON.stringify(growths);
    readGrowths([text], { adds }).forEach((additions, index) => {
      const { table = "", keyColumns = [], sumColumns = [] } = adds[index] ?? {};
      const named = byTable.get(table) ?? [];
      byTable.set(table, named);
      for (const { key, sums: growth } of additions.values()) {
        const cells = [...key, ...growth];
        named.push(
          Object.fromEntries(
            [...keyColumns, ...sumColumns].map((column, at) => [column, cells[at] ?? null]),
          ),
        );
      }
    });
  }
  return (table) => byTable.get(table) ?? [];
}
