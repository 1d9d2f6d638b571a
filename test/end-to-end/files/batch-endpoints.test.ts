import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import type { BatchCreateParams } from "openai/resources/batches";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { pixelPng } from "../clients/support/pixel-png.ts";

let gateway: TestGateway;
let openai: OpenAI;
let pictureId: string;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  const picture = await openai.files.create({
    file: await toFile(Buffer.from(pixelPng, "base64"), "one.png", { type: "image/png" }),
    purpose: "vision",
  });
  pictureId = picture.id;
});
afterAll(() => gateway.stop());

interface ResultLine {
  custom_id: string;
  response: { status_code: number; body: Record<string, unknown> };
}

/** Runs one line; returns it from the output, or from the errors. */
async function resultOf(endpoint: string, body: object): Promise<ResultLine> {
  const line = { custom_id: "a", method: "POST", url: endpoint, body };
  const file = await openai.files.create({
    file: await toFile(Buffer.from(JSON.stringify(line)), "in.jsonl"),
    purpose: "batch",
  });
  const made = await openai.batches.create({
    input_file_id: file.id,
    endpoint: endpoint as BatchCreateParams["endpoint"],
    completion_window: "24h",
  });
  let batch = made;
  await pollUntil(async () => {
    batch = await openai.batches.retrieve(made.id);
    return !["validating", "in_progress", "finalizing"].includes(batch.status);
  });
  expect([batch.status, batch.errors ?? null]).toEqual(["completed", null]);
  const id = batch.output_file_id ?? batch.error_file_id ?? "";
  return JSON.parse(await (await openai.files.content(id)).text()) as ResultLine;
}

const messages = [{ role: "user", content: "hello" }];
const chat = { model: "sandbox/chat:free", messages };

test.each<[endpoint: string, body: object, told: object]>([
  ["/v1/chat/completions", chat, { object: "chat.completion" }],
  [
    "/v1/completions",
    { model: "sandbox/chat:free", prompt: "hello", echo: true, max_tokens: 20 },
    {
      object: "text_completion",
      id: expect.stringMatching(/^cmpl-/),
      choices: [expect.objectContaining({ text: expect.stringMatching(/^hello/) })],
    },
  ],
  ["/v1/responses", { model: "sandbox/chat:free", input: "hello" }, { object: "response" }],
  ["/v1/messages", { ...chat, max_tokens: 20 }, { type: "message" }],
  [
    "/v1/images/generations",
    { model: "sandbox/image:free", prompt: "a cat", size: "512x512" },
    { data: [{ b64_json: expect.stringMatching(/^iVBOR/) }] },
  ],
])("a line of %s is answered as its endpoint answers", async (endpoint, body, told) => {
  const { response } = await resultOf(endpoint, body);
  expect(response.status_code).toBe(200);
  expect(response.body).toMatchObject(told);
});

test("a line of image edits names its pictures by file id or by data URL", async () => {
  const asked = { model: "sandbox/image:free", prompt: "a dog", size: "512x512" };
  for (const images of [
    [{ file_id: pictureId }],
    [{ image_url: `data:image/png;base64,${pixelPng}` }],
  ]) {
    const { response } = await resultOf("/v1/images/edits", { ...asked, images });
    expect(response.status_code).toBe(200);
    expect(response.body).toMatchObject({ data: [{ b64_json: expect.stringMatching(/^iVBOR/) }] });
  }
  const unknown = { ...asked, images: [{ file_id: "file-0000000000000000000000000000" }] };
  const { response } = await resultOf("/v1/images/edits", unknown);
  expect(response).toMatchObject({
    status_code: 404,
    body: { error: { param: "images[0]" } },
  });
});
