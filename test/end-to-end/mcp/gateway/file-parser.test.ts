import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { writePdf } from "../../../support/documents/write-pdf.ts";
import { startToolStage, type ToolStage } from "./tool-stage.ts";

let stage: ToolStage;
beforeAll(async () => {
  stage = await startToolStage();
});
afterAll(() => stage.stop());
beforeEach(() => stage.models.forget());

const dataUrl = (bytes: Uint8Array): string =>
  `data:application/pdf;base64,${Buffer.from(bytes).toString("base64")}`;

const ask = (bytes: Uint8Array) =>
  stage.gateway.post("/chat/completions", {
    model: "scripted/openai-chat",
    plugins: [{ id: "file-parser" }],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What does it say?" },
          { type: "file", file: { filename: "offer.pdf", file_data: dataUrl(bytes) } },
        ],
      },
    ],
  });

test("a PDF becomes text for a model that does not read files", async () => {
  stage.models.say({ text: ["An offer."] });
  const answer = await ask(
    writePdf([{ texts: [{ text: "The offer is 42 euros.", x: 50, y: 700 }] }]),
  );
  expect(answer.status).toBe(200);
  const sent = JSON.stringify(stage.models.requests.at(-1)?.json());
  expect(sent).toContain("The offer is 42 euros.");
  expect(sent).toContain("offer.pdf");
  expect(sent).not.toContain("file-parser");
  expect(sent).not.toContain("file_data");
}, 60_000);

test("a file that is none is refused with its place", async () => {
  const answer = await ask(new TextEncoder().encode("no pdf at all"));
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { param: "messages[0].content[1]" } });
});
