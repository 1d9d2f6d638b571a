import { describe, expect, test } from "bun:test";
import { recordColumns, type RowOf } from "./record-columns.ts";

interface Sample {
  id: string;
  limitNano: bigint | null;
  paused: boolean;
  tags: readonly string[] | null;
  joinedName?: string | undefined;
  loopGuard?: { warn: number };
}

const { fromRow, rowOf } = recordColumns<Sample>({
  id: "plain",
  limitNano: "nano",
  paused: "flag",
  tags: "json",
  joinedName: "plain?",
  loopGuard: "json?",
});

const cases: { name: string; record: Sample; row: RowOf<Sample> }[] = [
  {
    name: "every field",
    record: {
      id: "a",
      limitNano: 2n ** 60n,
      paused: true,
      tags: ["x"],
      joinedName: "b",
      loopGuard: { warn: 3 },
    },
    row: {
      id: "a",
      limit_nano: 2 ** 60,
      paused: 1,
      tags: '["x"]',
      joined_name: "b",
      loop_guard: '{"warn":3}',
    },
  },
  {
    name: "null, and fields that are absent",
    record: { id: "a", limitNano: null, paused: false, tags: null },
    row: {
      id: "a",
      limit_nano: null,
      paused: 0,
      tags: null,
      joined_name: null,
      loop_guard: null,
    },
  },
];

describe("recordColumns", () => {
  test.each(cases)("writes and reads $name", ({ record, row }) => {
    expect(rowOf(record)).toEqual(row);
    expect(fromRow(row)).toStrictEqual(record);
  });

  test("reads an amount that Postgres gives as a bigint, and no column of another", () => {
    const row = {
      ...rowOf({ id: "a", limitNano: 0n, paused: false, tags: null }),
      removed_at_ms: 1,
    };
    expect(fromRow({ ...row, limit_nano: 2n ** 60n })).toStrictEqual({
      id: "a",
      limitNano: 2n ** 60n,
      paused: false,
      tags: null,
    });
  });
});
