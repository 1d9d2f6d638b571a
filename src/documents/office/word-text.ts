import { markdownTable } from "./markdown-table.ts";
import { attributeOf, xmlEvents, type XmlEvent } from "./xml-events.ts";

/** Reads the paragraphs and tables of a Word document (ECMA-376, part 1, section 17). */
class WordReader {
  readonly blocks: string[] = [];
  private paragraph = "";
  private prefix = "";
  private isText = false;
  /** How many tables the present place is in; the rows are those of the outermost. */
  private tables = 0;
  private rows: string[][] = [];
  private cell = "";

  take(event: XmlEvent): void {
    if (event.kind === "text") {
      if (this.isText) this.paragraph += event.text;
    } else if (event.kind === "start") this.start(event.name, event.attributes);
    else this.end(event.name);
  }

  private start(name: string, attributes: string): void {
    if (name === "w:p") [this.paragraph, this.prefix] = ["", ""];
    else if (name === "w:t") this.isText = true;
    else if (name === "w:tab") this.paragraph += "\t";
    else if (name === "w:br" || name === "w:cr") this.paragraph += "\n";
    else if (name === "w:numPr") this.prefix ||= "- ";
    else if (name === "w:pStyle") this.prefix = headingOf(attributes) ?? this.prefix;
    else if (name === "w:tbl") {
      this.tables += 1;
      if (this.tables === 1) this.rows = [];
    } else if (this.tables === 1 && name === "w:tr") this.rows.push([]);
    else if (this.tables === 1 && name === "w:tc") this.cell = "";
  }

  private end(name: string): void {
    if (name === "w:t") this.isText = false;
    else if (name === "w:p") this.endParagraph();
    else if (this.tables === 1 && name === "w:tc") this.rows.at(-1)?.push(this.cell);
    else if (name === "w:tbl") {
      this.tables -= 1;
      if (this.tables === 0) this.blocks.push(markdownTable(this.rows));
    }
  }

  private endParagraph(): void {
    const text = this.paragraph.trim();
    this.paragraph = "";
    if (text === "") return;
    if (this.tables > 0) this.cell += this.cell === "" ? text : ` ${text}`;
    else this.blocks.push(this.prefix + text);
  }
}

/** Returns the mark of a heading's style; undefined for every other style. */
function headingOf(attributes: string): string | undefined {
  const style = attributeOf(attributes, "w:val") ?? "";
  if (style === "Title") return "# ";
  const level = /^Heading([1-6])$/i.exec(style)?.[1];
  return level === undefined ? undefined : `${"#".repeat(Number(level))} `;
}

/** Returns the text of a Word document's main part as Markdown. */
export function wordText(xml: string): string {
  const reader = new WordReader();
  for (const event of xmlEvents(xml)) reader.take(event);
  return reader.blocks.join("\n\n");
}
