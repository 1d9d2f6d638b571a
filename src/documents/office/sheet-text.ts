import { markdownTable } from "./markdown-table.ts";
import { attributeOf, xmlEvents } from "./xml-events.ts";

/** The most columns of a sheet that are shown; later ones are left out. */
const columnsMax = 200;

/** Returns the shared texts of a workbook, in their order. */
export function sharedTexts(xml: string): string[] {
  const texts: string[] = [];
  let isText = false;
  let isPhonetic = false;
  for (const event of xmlEvents(xml)) {
    if (event.kind === "text") {
      if (isText && !isPhonetic) texts.push((texts.pop() ?? "") + event.text);
    } else {
      const starts = event.kind === "start";
      if (event.name === "si" && starts) texts.push("");
      else if (event.name === "t") isText = starts;
      else if (event.name === "rPh") isPhonetic = starts;
    }
  }
  return texts;
}

/** The built-in formats of dates and times (ECMA-376, part 1, section 18.8.30). */
const isDateFormat = (id: number): boolean => (id >= 14 && id <= 22) || (id >= 45 && id <= 47);

/** Returns for each style of cells whether it shows a date. */
export function dateStyles(xml: string): boolean[] {
  const own = new Map<number, boolean>();
  const styles: boolean[] = [];
  let isCells = false;
  for (const event of xmlEvents(xml)) {
    if (event.kind === "text") continue;
    const starts = event.kind === "start";
    if (event.name === "cellXfs") isCells = starts;
    if (!starts) continue;
    const id = Number(attributeOf(event.attributes, "numFmtId"));
    if (event.name === "numFmt") {
      const code = attributeOf(event.attributes, "formatCode") ?? "";
      own.set(id, /[ymdhs]/i.test(code.replaceAll(/"[^"]*"|\[[^\]]*\]|\\./g, "")));
    } else if (event.name === "xf" && isCells) styles.push(own.get(id) ?? isDateFormat(id));
  }
  return styles;
}

/** Returns a number of days since 1899-12-30 as a date, with its time where it has one. */
function dateText(days: number): string {
  const date = new Date(Math.round((days - 25_569) * 86_400_000));
  if (Number.isNaN(date.getTime())) return String(days);
  const text = date.toISOString();
  return days % 1 === 0 ? text.slice(0, 10) : text.slice(0, 19).replace("T", " ");
}

/** Returns the place of a column, from 0, by its letters. */
const columnOf = (reference: string): number =>
  [...reference.replace(/\d+$/, "")].reduce(
    (sum, letter) => sum * 26 + letter.charCodeAt(0) - 64,
    0,
  ) - 1;

/** What the cells of a workbook refer to. */
export interface WorkbookParts {
  texts: readonly string[];
  dates: readonly boolean[];
}

interface Cell {
  column: number;
  type: string;
  style: number;
  value: string;
}

const valueOf = ({ type, style, value }: Cell, { texts, dates }: WorkbookParts): string => {
  if (type === "s") return texts[Number(value)] ?? "";
  if (type === "b") return value === "1" ? "TRUE" : "FALSE";
  const isDate = type === "n" && value !== "" && dates[style] === true;
  return isDate ? dateText(Number(value)) : value;
};

/** Returns the cells of a sheet as a table of Markdown. Empty rows are left out. */
export function sheetText(xml: string, parts: WorkbookParts): string {
  const rows: string[][] = [];
  let cell: Cell | undefined;
  let isValue = false;
  for (const event of xmlEvents(xml)) {
    if (event.kind === "text") {
      if (isValue && cell !== undefined) cell.value += event.text;
    } else if (event.name === "row" && event.kind === "start") rows.push([]);
    else if (event.name === "v" || event.name === "t") isValue = event.kind === "start";
    else if (event.name !== "c") continue;
    else if (event.kind === "start") {
      const reference = attributeOf(event.attributes, "r");
      cell = {
        column: reference === undefined ? (rows.at(-1)?.length ?? 0) : columnOf(reference),
        type: attributeOf(event.attributes, "t") ?? "n",
        style: Number(attributeOf(event.attributes, "s") ?? 0),
        value: "",
      };
    } else if (cell !== undefined && cell.column >= 0 && cell.column < columnsMax) {
      const row = rows.at(-1) ?? [];
      while (row.length < cell.column) row.push("");
      row[cell.column] = valueOf(cell, parts);
    }
  }
  return markdownTable(rows.filter((row) => row.some((value) => value !== "")));
}
