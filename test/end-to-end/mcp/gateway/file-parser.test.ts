import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { writeOffice } from "../../../support/documents/write-office.ts";
import { writePdf } from "../../../support/documents/write-pdf.ts";
import { startToolStage, type ToolStage } from "./tool-stage.ts";

let stage: ToolStage;
beforeAll(async () => {
  stage = await startToolStage();
});
afterAll(() => stage.stop());
beforeEach(() => stage.models.forget());

interface File {
  name: string;
  bytes: Uint8Array;
}

const base64 = ({ bytes }: File): string => Buffer.from(bytes).toString("base64");
const dataUrl = (file: File): string => `data:application/octet-stream;base64,${base64(file)}`;
const plugins = [{ id: "file-parser" }];
const question = "What does it say?";

/** A request with a file, by its path. */
const requests = {
  "/chat/completions": (file: File) => ({
    plugins,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: question },
          { type: "file", file: { filename: file.name, file_data: dataUrl(file) } },
        ],
      },
    ],
  }),
  "/messages": (file: File) => ({
    plugins,
    max_tokens: 100,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: question },
          {
            type: "document",
            title: file.name,
            source: { type: "base64", media_type: "application/pdf", data: base64(file) },
          },
        ],
      },
    ],
  }),
  "/responses": (file: File) => ({
    plugins,
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: question },
          { type: "input_file", filename: file.name, file_data: dataUrl(file) },
        ],
      },
    ],
  }),
} as const;

const files: readonly (File & { says: string })[] = [
  {
    name: "offer.pdf",
    bytes: writePdf([{ texts: [{ text: "The offer is 42 euros.", x: 50, y: 700 }] }]),
    says: "The offer is 42 euros.",
  },
  {
    name: "offer.docx",
    bytes: writeOffice.word("<w:p><w:r><w:t>Forty-two euros</w:t></w:r></w:p>"),
    says: "Forty-two euros",
  },
  {
    name: "offer.xlsx",
    bytes: writeOffice.workbook({
      texts: ["Offer"],
      sheets: { Sums: '<row><c t="s"><v>0</v></c><c><v>42</v></c></row>' },
    }),
    says: "| Offer | 42 |",
  },
  { name: "offer.pptx", bytes: writeOffice.slides(["Our offer"]), says: "Our offer" },
];

describe.each(Object.entries(requests))("%s", (path, requestWith) => {
  test("files become text for a model that does not read them", async () => {
    for (const model of ["scripted/openai-chat", "scripted/anthropic-messages"])
      for (const { says, ...file } of files) {
        stage.models.say({ text: ["An offer."] });
        const answer = await stage.gateway.post(path, { model, ...requestWith(file) });
        expect(answer.status).toBe(200);
        const sent = JSON.stringify(stage.models.requests.at(-1)?.json());
        expect(sent).toContain(says);
        expect(sent).toContain(file.name);
        expect(sent).not.toContain("file-parser");
        expect(sent).not.toContain(base64(file));
      }
  }, 240_000);

  test("a file that is none is refused with its place", async () => {
    const bytes = new TextEncoder().encode("no pdf at all");
    const answer = await stage.gateway.post(path, {
      model: "scripted/openai-chat",
      ...requestWith({ name: "x.pdf", bytes }),
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toMatch(/(?:messages|input)\[0\]\.content\[1\]/);
  });
});

test("a response whose file became text can be gone on with", async () => {
  const [file] = files;
  if (file === undefined) throw new Error("there is a file");
  stage.models.say({ text: ["An offer."] });
  const model = "scripted/openai-chat";
  const first = await stage.gateway.post("/responses", {
    model,
    ...requests["/responses"](file),
  });
  const { id } = (await first.json()) as { id: string };
  stage.models.say({ text: ["Of 42."] });
  const second = await stage.gateway.post("/responses", {
    model,
    plugins,
    previous_response_id: id,
    input: "Of how much?",
  });
  expect(second.status).toBe(200);
  const sent = JSON.stringify(stage.models.requests.at(-1)?.json());
  expect(sent).toContain("The offer is 42 euros.");
  expect(sent).toContain("Of how much?");
}, 240_000);
