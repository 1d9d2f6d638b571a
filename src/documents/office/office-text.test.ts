import { expect, test } from "bun:test";
import { strToU8, zipSync } from "fflate";
import { writeOffice } from "../../../test/support/documents/write-office.ts";
import { officeText } from "./office-text.ts";

test("a Word document keeps its headings, lists, tables and breaks", () => {
  const { markdown } = officeText(
    writeOffice.word(
      '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Offer &amp; terms</w:t></w:r></w:p>' +
        '<w:p><w:r><w:t xml:space="preserve">First </w:t></w:r><w:r><w:t>line</w:t><w:br/><w:t>second</w:t></w:r></w:p>' +
        "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>a point</w:t></w:r></w:p>" +
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Part</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Price</w:t></w:r></w:p></w:tc></w:tr>" +
        "<w:tr><w:tc><w:p><w:r><w:t>Wheel|tyre</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>",
    ),
  );
  expect(markdown).toBe(
    "## Offer & terms\n\nFirst line\nsecond\n\n- a point\n\n| Part | Price |\n| --- | --- |\n| Wheel\\|tyre |  |",
  );
});

test("a workbook shows its sheets in order, with texts, numbers, dates and gaps", () => {
  const { markdown, pages } = officeText(
    writeOffice.workbook({
      texts: ["Day", "Amount"],
      sheets: {
        Sums:
          '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>' +
          '<row r="2"><c r="A2" s="1"><v>46000</v></c><c r="C2"><v>12.5</v></c></row>',
        Notes: '<row><c t="inlineStr"><is><t>ok</t></is></c><c t="b"><v>1</v></c></row>',
      },
    }),
  );
  expect(pages).toBe(2);
  expect(markdown).toBe(
    "## Sums\n\n| Day |  | Amount |\n| --- | --- | --- |\n| 2025-12-09 |  | 12.5 |\n\n## Notes\n\n| ok | TRUE |\n| --- | --- |",
  );
});

test("a presentation shows its slides in the order of the show", () => {
  const { markdown } = officeText(writeOffice.slides(["Plan", "Goal", "End"]));
  expect(markdown).toBe("## Slide 1\n\nEnd\n\n## Slide 2\n\nGoal\n\n## Slide 3\n\nPlan");
});

test("archives that are damaged, of another kind or too large when unpacked are refused", () => {
  expect(() => officeText(zipSync({ "a.txt": strToU8("a") }))).toThrow("no Word document");
  const whole = writeOffice.word("<w:p/>");
  expect(() => officeText(whole.slice(0, 60))).toThrow("damaged");
  const bomb = zipSync({ "word/document.xml": new Uint8Array(70 * 1024 * 1024) });
  expect(bomb.length).toBeLessThan(200_000);
  expect(() => officeText(bomb)).toThrow("larger than");
});
