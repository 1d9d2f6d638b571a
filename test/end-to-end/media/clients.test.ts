import { createOpenAI } from "@ai-sdk/openai";
import { generateImage, generateSpeech, experimental_transcribe as transcribe } from "ai";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createConnection, type Socket } from "node:net";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";

const mib = 1024 * 1024;
const directory = mkdtempSync(join(tmpdir(), "uploads-"));
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sandbox: true,
    spool: { directory, bytesMax: 24 * mib },
  });
});
afterAll(async () => {
  await gateway.stop();
  rmSync(directory, { recursive: true, force: true });
});

test("the AI SDK makes a picture, speaks and transcribes", async () => {
  const openai = createOpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey });
  const { image } = await generateImage({
    model: openai.image("sandbox/image:free"),
    prompt: "a cat",
    size: "512x512",
  });
  expect(image.mediaType).toBe("image/png");
  const changed = await generateImage({
    model: openai.image("sandbox/image:free"),
    prompt: { text: "at night", images: [image.uint8Array], mask: image.uint8Array },
  });
  expect([changed.image.mediaType, changed.warnings]).toEqual(["image/png", []]);
  const { audio } = await generateSpeech({
    model: openai.speech("sandbox/speech:free"),
    text: "Hello",
    voice: "alloy",
    outputFormat: "wav",
  });
  expect(audio.mediaType).toBe("audio/wav");
  const { text } = await transcribe({
    model: openai.transcription("sandbox/transcribe:free"),
    audio: audio.uint8Array,
  });
  expect(text).toContain(String(audio.uint8Array.length));
});

test("a file of the workspace is transcribed by its id", async () => {
  const upload = new FormData();
  upload.append("purpose", "user_data");
  upload.append("file", new File([Buffer.alloc(5_000, 1)], "a.wav", { type: "audio/wav" }));
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const post = async (path: string, body: FormData) =>
    fetch(gateway.baseUrl + path, { method: "POST", headers, body });
  const { id } = (await (await post("/files", upload)).json()) as { id: string };
  const form = new FormData();
  form.append("model", "sandbox/transcribe:free");
  form.append("file", id);
  const answer = await post("/audio/transcriptions", form);
  expect(await answer.json()).toMatchObject({ text: expect.stringContaining("5000") });
});

/** Sends the beginning of a form that says it is twice as long. */
async function beginUpload(bytes: number): Promise<Socket> {
  const { port } = new URL(gateway.origin);
  const socket = createConnection(Number(port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testLlmKey}\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${bytes * 2}\r\n\r\n` +
      `--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`,
  );
  // The kernel keeps less than the longer one, so that the gateway has read some of it.
  await new Promise<unknown>((written) => socket.write(Buffer.alloc(bytes), written));
  return socket;
}

/** Returns the status of an upload that takes nearly all of the place for all of them. */
async function statusOfUpload(): Promise<number> {
  const form = new FormData();
  form.append("model", "sandbox/transcribe:free");
  form.append("file", new File([Buffer.alloc(22 * mib, 1)], "a.wav"));
  const response = await fetch(`${gateway.baseUrl}/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
  await response.text();
  return response.status;
}

test("a client that leaves in the middle of an upload leaves nothing", async () => {
  const sockets = await Promise.all([beginUpload(20 * mib), beginUpload(100_000)]);
  for (const socket of sockets) {
    socket.destroy();
    await once(socket, "close");
  }
  // What was read of them is freed, so that there is place again.
  await pollUntil(async () => (await statusOfUpload()) === 200);
  expect((await gateway.get("/key")).status).toBe(200);
});

test("a form without a filename, and one that is cut, are answered", async () => {
  const post = (body: string) =>
    fetch(`${gateway.baseUrl}/audio/transcriptions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${testLlmKey}`,
        "content-type": "multipart/form-data; boundary=b",
      },
      body,
    });
  const model = `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nsandbox/transcribe:free\r\n`;
  const file = `--b\r\ncontent-disposition: form-data; name="file"\r\ncontent-type: audio/wav\r\n\r\nRIFFx\r\n`;
  expect((await post(`${model}${file}--b--\r\n`)).status).toBe(200);
  expect((await post(`${model}${file}`)).status).toBe(400);
});
