/** The value of a table's cell. */
export type CsvValue = string | number | boolean | null;

/**
 * Returns a cell as in RFC 4180. Values that a spreadsheet would take for a formula are turned into
 * text, since callers choose names.
 */
function csvCell(value: CsvValue): string {
  if (typeof value !== "string") return String(value ?? "");
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns one line of a table. */
export const csvLine = (cells: readonly CsvValue[]): string =>
  `${cells.map(csvCell).join(",")}\r\n`;

/** Returns the headers of a table that browsers save as a file. */
export const csvHeaders = (fileName: string): Record<string, string> => ({
  "content-type": "text/csv; charset=utf-8",
  "content-disposition": `attachment; filename="${fileName}"`,
});
