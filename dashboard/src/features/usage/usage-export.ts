import type { UsagePart, UsageRow } from "./api.ts";

const columns = [
  "bucket",
  "model",
  "provider",
  "key_id",
  "requests",
  "errors",
  "tokens",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost",
  "app",
  "customer",
  "preset_id",
  "session_id",
  "tag",
] as const;

/** Text cells that a spreadsheet would take for a formula are kept from it. */
const cellOf = (value: unknown): string => {
  const text = String(value ?? "");
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
};

const table = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Partial<Record<Column, unknown>>>[],
): string =>
  [
    columns.join(","),
    ...rows.map((row) => columns.map((column) => cellOf(row[column])).join(",")),
  ].join("\n");

/** Returns rows of usage as a table of comma-separated values, with all of their columns. */
export const csvOf = (rows: readonly UsageRow[]): string => table(columns, rows);

const partColumns = [
  "part",
  "model",
  "provider",
  "key_id",
  "quantity",
  "requests",
  "cost",
] as const;

/** Returns the parts of usage in the same form; quantities are in the units of the API. */
export const partsCsvOf = (rows: readonly UsagePart[]): string => table(partColumns, rows);
