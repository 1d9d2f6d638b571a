import Anthropic, { toFile as anthropicFile } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { acme, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

let received: { messages: { content: unknown }[] } | undefined;
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    received = (await request.json()) as typeof received;
    return Response.json({
      id: "up_1",
      object: "chat.completion",
      created: 1,
      model: "large-v2",
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
  },
});

let gateway: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;
let picture: string;
let document: string;
beforeAll(async () => {
  gateway = await startGateway({ providers: [acme(`http://127.0.0.1:${upstream.port}/v1`)] });
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: testLlmKey, baseURL: gateway.origin, maxRetries: 0 });
  ({ id: picture } = await openai.files.create({
    file: await toFile(Buffer.from("\x89PNG"), "p.png", { type: "image/png" }),
    purpose: "vision",
  }));
  ({ id: document } = await anthropic.files.upload({
    file: await anthropicFile(Buffer.from("%PDF-1.7"), "d.pdf", { type: "application/pdf" }),
  }));
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const pdf = `data:application/pdf;base64,${Buffer.from("%PDF-1.7").toString("base64")}`;
const png = `data:image/png;base64,${Buffer.from("\x89PNG").toString("base64")}`;

test("chat: a file's content is sent in place of its id", async () => {
  await openai.chat.completions.create({
    model: "acme/large",
    messages: [{ role: "user", content: [{ type: "file", file: { file_id: document } }] }],
  });
  expect(received?.messages[0]?.content).toEqual([
    { type: "file", file: { filename: "d.pdf", file_data: pdf } },
  ]);
});

test("Messages: documents and pictures", async () => {
  await anthropic.messages.create({
    model: "acme/large",
    max_tokens: 10,
    messages: [
      {
        role: "user",
        content: [
          { type: "document", source: { type: "file", file_id: document } },
          { type: "image", source: { type: "file", file_id: picture.replace("-", "_") } },
        ],
      },
    ],
  } as Anthropic.MessageCreateParamsNonStreaming);
  const text = JSON.stringify(received);
  expect([text.includes(pdf), text.includes(png)]).toEqual([true, true]);
});

test("Responses: input_file and input_image", async () => {
  await openai.responses.create({
    model: "acme/large",
    store: false,
    input: [
      {
        role: "user",
        content: [
          { type: "input_file", file_id: document },
          { type: "input_image", file_id: picture, detail: "auto" },
        ],
      },
    ],
  });
  const text = JSON.stringify(received);
  expect([text.includes(pdf), text.includes(png)]).toEqual([true, true]);
});

test("a file that the workspace does not have is 404, with its field", async () => {
  const answer = await gateway.post("/chat/completions", {
    model: "acme/large",
    messages: [
      { role: "user", content: [{ type: "file", file: { file_id: `file-${"0".repeat(32)}` } }] },
    ],
  });
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({
    error: { code: "not_found", param: "messages[0].content[0].file.file_id" },
  });
});
