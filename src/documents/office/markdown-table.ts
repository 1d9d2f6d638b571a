/** Returns a cell as a table of Markdown can hold it. */
const cellOf = (text: string): string => text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();

/** Returns rows as a table of Markdown, whose head is the first row. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const width = Math.max(0, ...rows.map((row) => row.length));
  const [head, ...rest] = rows;
  if (head === undefined || width === 0) return "";
  const line = (row: readonly string[]): string =>
    `| ${Array.from({ length: width }, (_, index) => cellOf(row[index] ?? "")).join(" | ")} |`;
  return [line(head), `|${" --- |".repeat(width)}`, ...rest.map(line)].join("\n");
}
