import { unzipSync } from "fflate";
import { RefusedFileError } from "../converter/converter-messages.ts";
import { markdownTable } from "./markdown-table.ts";
import { dateStyles, sharedTexts, sheetText } from "./sheet-text.ts";
import { wordText } from "./word-text.ts";
import { attributeOf, xmlEvents } from "./xml-events.ts";

/** The most bytes of all parts that are read, unpacked, and the most parts. */
const unpackedMax = 64 * 1024 * 1024;
const partsMax = 2_000;

/** Parts that hold texts, and what leads from one to the other. */
const textParts = [
  /^word\/document\.xml$/,
  /^xl\/(?:workbook|sharedStrings|styles|worksheets\/[^/]+)\.xml$/,
  /^ppt\/(?:presentation|slides\/[^/]+)\.xml$/,
  /^(?:xl|ppt)\/_rels\/[^/]+\.rels$/,
];

/** Reads the parts of an archive that hold texts. Throws `RefusedFileError`. */
function partsOf(bytes: Uint8Array): ReadonlyMap<string, string> {
  let unpacked = 0;
  let count = 0;
  try {
    const files = unzipSync(bytes, {
      filter({ name, originalSize }) {
        if (!textParts.some((pattern) => pattern.test(name))) return false;
        unpacked += originalSize;
        count += 1;
        if (unpacked > unpackedMax || count > partsMax)
          throw new RefusedFileError(`The file is larger than ${unpackedMax} bytes when unpacked.`);
        return true;
      },
    });
    const decoder = new TextDecoder();
    return new Map(Object.entries(files).map(([name, part]) => [name, decoder.decode(part)]));
  } catch (error) {
    if (error instanceof RefusedFileError) throw error;
    throw new RefusedFileError("The file is damaged: its archive cannot be read.", {
      cause: error,
    });
  }
}

/** Returns the parts that a list of relations names, by their ids. */
function relationsOf(xml = "", folder: string): ReadonlyMap<string, string> {
  const relations = new Map<string, string>();
  for (const event of xmlEvents(xml)) {
    if (event.kind !== "start" || event.name !== "Relationship") continue;
    const id = attributeOf(event.attributes, "Id");
    const target = attributeOf(event.attributes, "Target");
    if (id === undefined || target === undefined) continue;
    relations.set(id, target.startsWith("/") ? target.slice(1) : `${folder}/${target}`);
  }
  return relations;
}

/** Returns the elements of a name in their order, with the part that each refers to. */
function namedParts(
  parts: ReadonlyMap<string, string>,
  { index, element, folder }: { index: string; element: string; folder: string },
): { name: string; xml: string }[] {
  const fileName = index.slice(index.lastIndexOf("/") + 1);
  const relations = relationsOf(parts.get(`${folder}/_rels/${fileName}.rels`), folder);
  return [...xmlEvents(parts.get(index) ?? "")].flatMap((event) => {
    if (event.kind !== "start" || event.name !== element) return [];
    const xml = parts.get(relations.get(attributeOf(event.attributes, "r:id") ?? "") ?? "");
    if (xml === undefined) return [];
    return [{ name: attributeOf(event.attributes, "name") ?? "", xml }];
  });
}

/** Returns the texts of a slide: its paragraphs, and its tables (ECMA-376, part 1, section 21.1). */
function slideText(xml: string): string {
  const blocks: string[] = [];
  let rows: string[][] | undefined;
  let paragraph = "";
  let isText = false;
  for (const event of xmlEvents(xml)) {
    if (event.kind === "text") {
      if (isText) paragraph += event.text;
      continue;
    }
    const { name } = event;
    const starts = event.kind === "start";
    if (name === "a:t") isText = starts;
    else if (name === "a:br" && starts) paragraph += "\n";
    else if (name === "a:tbl") {
      if (rows !== undefined && !starts) blocks.push(markdownTable(rows));
      rows = starts ? [] : undefined;
    } else if (name === "a:tr" && starts) rows?.push([]);
    else if (name === "a:tc" && starts) rows?.at(-1)?.push("");
    else if (name === "a:p" && !starts) {
      const text = paragraph.trim();
      paragraph = "";
      const row = rows?.at(-1);
      if (row !== undefined) row.push(`${row.pop() ?? ""} ${text}`.trim());
      else if (text !== "") blocks.push(text);
    }
  }
  return blocks.join("\n\n");
}

function workbookText(parts: ReadonlyMap<string, string>): { markdown: string; pages: number } {
  const index = "xl/workbook.xml";
  const sheets = namedParts(parts, { index, element: "sheet", folder: "xl" });
  const shared = {
    texts: sharedTexts(parts.get("xl/sharedStrings.xml") ?? ""),
    dates: dateStyles(parts.get("xl/styles.xml") ?? ""),
  };
  const texts = sheets.map(({ name, xml }) => `## ${name}\n\n${sheetText(xml, shared)}`);
  return { markdown: texts.join("\n\n"), pages: sheets.length };
}

/**
 * Returns the text of a Word document, an Excel workbook or a PowerPoint presentation as Markdown,
 * with the number of its sheets or slides. Throws `RefusedFileError` for every other archive.
 */
export function officeText(bytes: Uint8Array): { markdown: string; pages: number } {
  const parts = partsOf(bytes);
  const document = parts.get("word/document.xml");
  if (document !== undefined) return { markdown: wordText(document), pages: 1 };
  if (parts.has("xl/workbook.xml")) return workbookText(parts);
  if (!parts.has("ppt/presentation.xml"))
    throw new RefusedFileError(
      "The file is no Word document, Excel workbook or PowerPoint presentation.",
    );
  const index = "ppt/presentation.xml";
  const slides = namedParts(parts, { index, element: "p:sldId", folder: "ppt" });
  const texts = slides.map(({ xml }, place) => `## Slide ${place + 1}\n\n${slideText(xml)}`);
  return { markdown: texts.join("\n\n"), pages: slides.length };
}
