import { describe, expect, test } from "bun:test";
import { planRow, surfacesOf } from "./routing-row.ts";
import { readRoutingTable } from "./routing-table.ts";

/** Tests every row of routing tables on every surface that the row covers. */
export function describeRoutingTable(name: string, tables: string): void {
  const cases = readRoutingTable(tables).flatMap((row) =>
    surfacesOf(row).map((surface) => ({ row, surface })),
  );
  describe(name, () => {
    test.each(cases.map((entry) => [entry.row.shows, entry.surface, entry.row] as const))(
      "%s (%s)",
      (_, surface, row) => {
        const { order, why } = planRow(row, { surface });
        expect(order).toBe(row.order);
        if (row.why !== "") expect(why).toBe(row.why);
      },
    );
  });
}
