import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { drawPage, rows, type DrawnText } from "../../support/documents/draw-page.ts";
import { encodePicture, pictureFormats } from "../../support/documents/encode-picture.ts";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

interface Extracted {
  text: string;
  format: string;
  model: string;
  tokens: number;
}

async function extract(bytes: Uint8Array, name = "scan"): Promise<Extracted> {
  const form = new FormData();
  form.set("image", new File([new Uint8Array(bytes)], name));
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const response = await fetch(`${gateway.baseUrl}/ocr/extract`, {
    method: "POST",
    headers,
    body: form,
  });
  const body = await response.json();
  expect({ status: response.status, body }).toMatchObject({ status: 200 });
  return body as Extracted;
}

const sentence = "The invoice was paid in November";
const small = (changes: { degrees?: number; transparent?: boolean } = {}) =>
  drawPage({
    width: 640,
    height: 120,
    texts: [{ text: sentence, x: 40, y: 70, size: 32 }],
    ...changes,
  });

describe("an image is read whatever its file name", () => {
  test.each(pictureFormats)("%s", async (format) => {
    const { text, ...rest } = await extract(await encodePicture[format](small()), "picture.docx");
    expect(text).toBe(sentence);
    expect(rest).toEqual({ format: "markdown", model: "switchyard/ocr-eng-1", tokens: 8 });
  });

  test("in JSON, as base64 and as a data URL with any media type", async () => {
    const base64 = Buffer.from(await encodePicture.png(small())).toString("base64");
    const inLines = base64.replace(/(.{76})/g, "$1\r\n");
    const forUrls = base64.replaceAll("+", "-").replaceAll("/", "_");
    for (const image of [base64, inLines, forUrls, `data:text/plain;base64,${base64}`]) {
      const response = await gateway.post("/ocr/extract", { image, filename: "a.tiff" });
      expect(await response.json()).toMatchObject({ text: sentence });
      expect(response.headers.get("x-service-model")).toBe("switchyard/ocr-eng-1");
    }
  });

  test("with a transparent background", async () => {
    expect((await extract(await encodePicture.png(small({ transparent: true })))).text).toBe(
      sentence,
    );
  });
});

const page: readonly DrawnText[] = [
  { text: "Yearly Report", x: 90, y: 100, size: 52 },
  ...rows(["This paragraph has two lines that belong", "together and read as one."], {
    x: 90,
    y: 180,
  }),
  ...rows(["• apples and pears", "• plums"], { x: 110, y: 320 }),
  ...["Fruit", "Amount", "Price"].flatMap((text, column) => [
    { text, x: 90 + column * 260, y: 460 },
    { text: ["Apples", "12", "3.50"][column] ?? "", x: 90 + column * 260, y: 500 },
    { text: ["Pears", "7", "2.10"][column] ?? "", x: 90 + column * 260, y: 540 },
  ]),
];
const pageMarkdown = `# Yearly Report

This paragraph has two lines that belong together and read as one.

- apples and pears
- plums

| Fruit | Amount | Price |
| --- | --- | --- |
| Apples | 12 | 3.50 |
| Pears | 7 | 2.10 |`;

describe("layout is converted to Markdown", () => {
  test("from a straight page and from one that is rotated by two degrees", async () => {
    for (const degrees of [0, 2]) {
      const canvas = drawPage({ width: 900, height: 600, texts: page, degrees });
      expect((await extract(await encodePicture.jpeg(canvas))).text).toBe(pageMarkdown);
    }
  });
});

describe("a PDF", () => {
  test("is accepted in JSON like images", async () => {
    const image = Buffer.from(
      writePdf([{ texts: [{ text: "A page with text of its own", x: 60, y: 780 }] }]),
    ).toString("base64");
    expect(await (await gateway.post("/ocr/extract", { image })).json()).toMatchObject({
      text: "A page with text of its own",
    });
  });

  test("in two columns is read column by column, and rows of short cells as a table", async () => {
    const columns = [
      ["The left column comes first and", "goes on below itself until it", "ends here."],
      ["The right column is read after", "the left one, as people do, and", "ends there."],
    ];
    const texts = columns.flatMap((lines, column) =>
      lines.map((text, row) => ({ text, x: 60 + column * 250, y: 780 - row * 14 })),
    );
    const cells = [
      ["Item", "Count"],
      ["Nails", "40"],
      ["Nuts | bolts", "7"],
    ].flatMap((row, index) =>
      row.map((text, column) => ({ text, x: 60 + column * 200, y: 600 - index * 16 })),
    );
    expect((await extract(writePdf([{ texts: [...texts, ...cells] }]))).text).toBe(
      [
        "The left column comes first and goes on below itself until it ends here.",
        "The right column is read after the left one, as people do, and ends there.",
        "| Item | Count |\n| --- | --- |\n| Nails | 40 |\n| Nuts \\| bolts | 7 |",
      ].join("\n\n"),
    );
  });

  test("with text is read without recognition, page by page", async () => {
    const pdf = writePdf([
      {
        texts: [
          { text: "Terms of Service", x: 60, y: 780, size: 20 },
          { text: "The first line of a paragraph ends with a divi-", x: 60, y: 740 },
          { text: "ded word and goes on (with a <b>tag</b>).", x: 60, y: 726 },
          { text: "1. Pay in time.", x: 70, y: 690 },
          { text: "2. Be kind.", x: 70, y: 676 },
        ],
      },
      { texts: [{ text: "Another page, with 10 % off.", x: 60, y: 780 }] },
    ]);
    expect((await extract(pdf)).text).toBe(
      [
        "# Terms of Service",
        "The first line of a paragraph ends with a divided word and goes on (with a \\<b>tag\\</b>).",
        "1. Pay in time.\n2. Be kind.",
        "Another page, with 10 % off.",
      ].join("\n\n"),
    );
  });

  test("with scanned pages uses recognition only for pages without text", async () => {
    const [width, height] = [1240, 1754];
    const scan = drawPage({ width, height, texts: [{ text: sentence, x: 150, y: 300, size: 24 }] });
    const ownText = { texts: [{ text: "A page with text of its own", x: 60, y: 780 }] };
    const pdf = writePdf([{ jpeg: await encodePicture.jpeg(scan), width, height }, ownText]);
    expect((await extract(pdf)).text).toBe(`${sentence}\n\nA page with text of its own`);
  });
});
