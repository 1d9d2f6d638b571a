/** A value of a table's cell. */
export type CsvValue = string | number | boolean | null;

/**
 * A cell as RFC 4180 has it. What a spreadsheet would take for a formula is made text, since
 * callers choose names.
 */
function csvCell(value: CsvValue): string {
  if (typeof value !== "string") return String(value ?? "");
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line of a table. */
export const csvLine = (cells: readonly CsvValue[]): string =>
  `${cells.map(csvCell).join(",")}\r\n`;

/** Headers of a table that browsers save as a file. */
export const csvHeaders = (fileName: string): Record<string, string> => ({
  "content-type": "text/csv; charset=utf-8",
  "content-disposition": `attachment; filename="${fileName}"`,
});
