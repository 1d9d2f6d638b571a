import type { UsageRow } from "./api.ts";

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

/** Returns rows of usage as a table of comma-separated values, with all of their columns. */
export const csvOf = (rows: readonly UsageRow[]): string =>
  [
    columns.join(","),
    ...rows.map((row) => columns.map((column) => cellOf(row[column])).join(",")),
  ].join("\n");
