import { createOpenAI } from "@ai-sdk/openai";
import { generateImage, generateSpeech, experimental_transcribe as transcribe } from "ai";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createConnection } from "node:net";
import { once } from "node:events";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

test("the AI SDK makes a picture, speaks and transcribes", async () => {
  const openai = createOpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey });
  const { image } = await generateImage({
    model: openai.image("sandbox/image:free"),
    prompt: "a cat",
    size: "512x512",
  });
  expect(image.mediaType).toBe("image/png");
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

/** Sends the beginning of a form that says it is longer, and leaves. */
async function leaveWithin(bytes: number): Promise<void> {
  const { port } = new URL(gateway.origin);
  const socket = createConnection(Number(port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testLlmKey}\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${bytes * 2}\r\n\r\n` +
      `--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`,
  );
  socket.write(Buffer.alloc(bytes));
  await Bun.sleep(100);
  socket.destroy();
  await once(socket, "close");
}

test("a client that leaves in the middle of an upload leaves nothing", async () => {
  await Promise.all([leaveWithin(3 * 1024 * 1024), leaveWithin(100_000)]);
  const after = await gateway.get("/key");
  expect(after.status).toBe(200);
  // The place is empty again, so that an upload of nearly all of it is taken.
  const form = new FormData();
  form.append("model", "sandbox/transcribe:free");
  form.append("file", new File([Buffer.alloc(2_000_000, 1)], "a.wav"));
  const response = await fetch(`${gateway.baseUrl}/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
  expect(response.status).toBe(200);
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
