import { strToU8, zipSync } from "fflate";

const archive = (parts: Readonly<Record<string, string>>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(parts).map(([name, xml]) => [name, strToU8(xml)])));

const relations = (targets: readonly string[]): string =>
  `<Relationships>${targets
    .map((target, index) => `<Relationship Id="r${index}" Target="${target}"/>`)
    .join("")}</Relationships>`;

/** Writes small office files with the parts that hold their texts. */
export const writeOffice = {
  /** A Word document with this body. */
  word: (body: string): Uint8Array =>
    archive({
      "[Content_Types].xml": "<Types/>",
      "word/document.xml": `<?xml version="1.0"?><w:document><w:body>${body}</w:body></w:document>`,
    }),
  /** A workbook whose second style is that of dates. */
  workbook: ({
    texts,
    sheets,
  }: {
    texts: readonly string[];
    sheets: Readonly<Record<string, string>>;
  }): Uint8Array => {
    const names = Object.keys(sheets);
    return archive({
      "xl/workbook.xml": `<workbook><sheets>${names
        .map((name, index) => `<sheet name="${name}" r:id="r${index}"/>`)
        .join("")}</sheets></workbook>`,
      "xl/_rels/workbook.xml.rels": relations(names.map((_, index) => `worksheets/s${index}.xml`)),
      "xl/sharedStrings.xml": `<sst>${texts.map((text) => `<si><t>${text}</t></si>`).join("")}</sst>`,
      "xl/styles.xml":
        '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
      ...Object.fromEntries(
        names.map((name, index) => [
          `xl/worksheets/s${index}.xml`,
          `<worksheet><sheetData>${sheets[name]}</sheetData></worksheet>`,
        ]),
      ),
    });
  },
  /** A presentation that shows its slides in the opposite order. */
  slides: (texts: readonly string[]): Uint8Array =>
    archive({
      "ppt/presentation.xml": `<p:presentation><p:sldIdLst>${texts
        .map((_, index) => `<p:sldId id="${256 + index}" r:id="r${texts.length - 1 - index}"/>`)
        .join("")}</p:sldIdLst></p:presentation>`,
      "ppt/_rels/presentation.xml.rels": relations(
        texts.map((_, index) => `slides/slide${index}.xml`),
      ),
      ...Object.fromEntries(
        texts.map((text, index) => [
          `ppt/slides/slide${index}.xml`,
          `<p:sld><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sld>`,
        ]),
      ),
    }),
};
