import { AzureChatOpenAI, AzureOpenAIEmbeddings } from "@langchain/openai";
import {
  embedMany,
  type EmbeddingModel,
  generateText,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import OpenAI, { AzureOpenAI, toFile } from "openai";
import { z } from "zod";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { at, textAt } from "../api/at.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";
import { testClient } from "../clients/support/test-clients-folder.ts";

const [chat, embed, image, speech, transcribe] = [
  "sandbox/chat:free",
  "sandbox/embed:free",
  "sandbox/image:free",
  "sandbox/speech:free",
  "sandbox/transcribe:free",
] as const;
const apiVersion = "2024-10-21";
const messages = [{ role: "user" as const, content: "Hello" }];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true, providers: [], aliases: { "gpt-4o": chat } });
});
afterAll(() => gateway.stop());

const azure = (deployment?: string, apiKey = testLlmKey): AzureOpenAI =>
  new AzureOpenAI({
    ...{ endpoint: gateway.origin, apiKey, apiVersion, maxRetries: 0 },
    ...(deployment !== undefined && { deployment }),
  });

describe("OpenAI's client for Azure", () => {
  test("chats by deployment, which takes precedence over the body's model", async () => {
    for (const deployment of ["gpt-4o", chat]) {
      const whole = await azure(deployment).chat.completions.create({ model: "-", messages });
      expect(whole.model).toBe(chat);
      let text = "";
      const stream = await azure(deployment).chat.completions.create({
        ...{ model: "-", messages, stream: true },
      });
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      expect(text).toBe(whole.choices[0]?.message.content ?? "");
    }
  });

  test("makes embeddings and completions", async () => {
    const { data, model } = await azure(embed).embeddings.create({
      ...{ model: "text-embedding-3-small", input: ["one", "two"] },
    });
    expect([data.length, model]).toEqual([2, embed]);
    const completion = await azure(chat).completions.create({ model: "-", prompt: "Hello" });
    expect(completion).toMatchObject({ object: "text_completion", model: chat });
  });

  test("makes and changes pictures, speaks, transcribes and translates", async () => {
    const made = await azure().images.generate({ model: image, prompt: "a cat", size: "512x512" });
    const picture = Buffer.from(made.data?.[0]?.b64_json ?? "", "base64");
    const edited = await azure(image).images.edit({
      ...{ model: "-", prompt: "a dog", size: "512x512" },
      image: await toFile(picture, "a.png", { type: "image/png" }),
    });
    expect(edited.data?.[0]?.b64_json).toStartWith("iVBOR");
    const spoken = await azure(speech).audio.speech.create({
      ...{ model: "tts", input: "Hello", voice: "alloy", response_format: "wav" },
    });
    const sound = Buffer.from(await spoken.arrayBuffer());
    const file = () => toFile(sound, "a.wav", { type: "audio/wav" });
    const { audio } = azure(transcribe);
    const heard = await audio.transcriptions.create({ model: "whisper", file: await file() });
    expect(heard.text).toContain(String(sound.length));
    const english = await audio.translations.create({ model: "whisper", file: await file() });
    expect(english.text).not.toBe("");
  });

  test("finds responses, files and models below /openai", async () => {
    const client = azure();
    const answer = await client.responses.create({ model: chat, input: "Hello" });
    expect((await client.responses.retrieve(answer.id)).output_text).toBe(answer.output_text);
    const content = Buffer.from("one");
    const { id } = await client.files.create({
      ...{ purpose: "user_data", file: await toFile(content, "a.txt") },
    });
    expect((await client.files.list()).data.map((file) => file.id)).toContain(id);
    expect(await (await client.files.content(id)).text()).toBe("one");
    expect((await client.files.delete(id)).deleted).toBe(true);
    expect((await client.models.list()).data.map((model) => model.id)).toContain(chat);
    expect((await client.models.retrieve(chat)).id).toBe(chat);
  });

  test("runs a batch whose lines have Azure's paths", async () => {
    const client = azure(chat);
    const line = { custom_id: "a", method: "POST", url: "/chat/completions" };
    const input = await client.files.create({
      purpose: "batch",
      file: await toFile(
        Buffer.from(JSON.stringify({ ...line, body: { model: chat, messages } })),
        "a.jsonl",
      ),
    });
    const { id } = await client.batches.create({
      input_file_id: input.id,
      endpoint: "/chat/completions" as "/v1/chat/completions",
      completion_window: "24h",
    });
    await pollUntil(async () => (await client.batches.retrieve(id)).status === "completed");
    const { request_counts: counts } = await client.batches.retrieve(id);
    expect(counts).toMatchObject({ total: 1, completed: 1 });
  });

  test("gets errors in OpenAI's form", async () => {
    const refusals = [
      [azure("no/such"), 404],
      [azure(chat, "sk-svc-v1-none"), 401],
    ] as const;
    for (const [client, status] of refusals) {
      const error: unknown = await client.embeddings
        .create({ model: "-", input: "one" })
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OpenAI.APIError);
      expect(at(error, "status")).toBe(status);
      expect(at(error, "error.message")).not.toBeUndefined();
    }
  });
});

test("the newer path takes OpenAI's client as it is", async () => {
  const client = new OpenAI({
    ...{ baseURL: `${gateway.origin}/openai/v1`, apiKey: testLlmKey, maxRetries: 0 },
    defaultQuery: { "api-version": "preview" },
  });
  const whole = await client.chat.completions.create({ model: chat, messages });
  expect(whole.choices).toHaveLength(1);
  expect((await client.embeddings.create({ model: embed, input: "a" })).data).toHaveLength(1);
  expect((await client.responses.create({ model: chat, input: "Hello" })).status).toBe("completed");
  expect((await client.batches.list()).data).toBeArray();
  expect((await client.files.list()).data).toBeArray();
});

/** The parts of the AI SDK's provider for Azure that are asked for here. */
interface AzureModels {
  chat(id: string): LanguageModel;
  responses(id: string): LanguageModel;
  completion(id: string): LanguageModel;
  embedding(id: string): EmbeddingModel;
}

const lacksAiSdk = missingPackage("cloud-clients/node_modules", "@ai-sdk/azure");
describe.skipIf(lacksAiSdk !== undefined)("the AI SDK's provider for Azure", () => {
  test.each([false, true])("asks by deployment: %p", async (useDeploymentBasedUrls) => {
    const { createAzure } = (await testClient("cloud-clients", "@ai-sdk/azure")) as {
      createAzure(options: object): AzureModels;
    };
    const models = createAzure({
      ...{ baseURL: `${gateway.origin}/openai`, apiKey: testLlmKey, useDeploymentBasedUrls },
      ...(useDeploymentBasedUrls && { apiVersion }),
    });
    const look = tool({ inputSchema: z.object({ q: z.string() }), execute: () => "found" });
    for (const kind of ["chat", "responses", "completion"] as const) {
      const asked = { model: models[kind]("gpt-4o"), prompt: "Hello", maxRetries: 0 };
      const whole = await generateText(asked);
      let text = "";
      for await (const piece of streamText(asked).textStream) text += piece;
      expect([kind, text]).toEqual([kind, whole.text]);
      if (kind === "completion") continue;
      const called = await generateText({
        ...{ ...asked, prompt: "find sandbox:calls=1", stopWhen: stepCountIs(3), tools: { look } },
      });
      expect([kind, called.steps.length, called.text === ""]).toEqual([kind, 2, false]);
    }
    const values = ["one", "two"];
    const embedded = await embedMany({ model: models.embedding(embed), values, maxRetries: 0 });
    expect(embedded.embeddings).toHaveLength(2);
    const error: unknown = await generateText({
      ...{ model: models.chat("no-such"), prompt: "Hello", maxRetries: 0 },
    }).catch((thrown: unknown) => thrown);
    expect([at(error, "statusCode"), textAt(error, "message")]).toEqual([
      404,
      expect.stringContaining("not in the catalog"),
    ]);
  });
});

test("LangChain's classes for Azure leave the slash of a deployment as it is", async () => {
  const shared = {
    azureOpenAIApiKey: testLlmKey,
    azureOpenAIApiVersion: apiVersion,
    azureOpenAIEndpoint: gateway.origin,
    maxRetries: 0,
  };
  const model = new AzureChatOpenAI({ ...shared, azureOpenAIApiDeploymentName: chat });
  const whole = await model.invoke("Hello");
  let text = "";
  for await (const chunk of await model.stream("Hello")) text += String(chunk.content);
  expect(text).toBe(String(whole.content));
  const vectors = new AzureOpenAIEmbeddings({
    ...shared,
    azureOpenAIBasePath: `${gateway.origin}/openai/deployments`,
    azureOpenAIApiDeploymentName: embed,
  });
  expect(await vectors.embedDocuments(["one", "two"])).toHaveLength(2);
});

test("a key's list of endpoints holds at Azure's paths as at the gateway's own", async () => {
  const created = await gateway.post(
    "/keys",
    { name: "narrow", allowed_endpoints: ["/embeddings"] },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const key = textAt(await created.json(), "key");
  const made = await azure(embed, key).embeddings.create({ model: "-", input: "one" });
  expect(made.data).toHaveLength(1);
  const status = async (path: string): Promise<number> =>
    (
      await fetch(`${gateway.origin}/openai/${path}?api-version=${apiVersion}`, {
        method: "POST",
        headers: { "api-key": key },
        body: JSON.stringify({ model: chat, messages, prompt: "a cat" }),
      })
    ).status;
  for (const path of [
    `deployments/${chat}/chat/completions`,
    `deployments/${chat}/completions`,
    `deployments/${image}/images/generations`,
    "v1/chat/completions",
    "v1/responses",
    "responses",
  ])
    expect([path, await status(path)]).toEqual([path, 403]);
});

test("a realtime session names its deployment in the query", async () => {
  const url = `${gateway.origin.replace("http", "ws")}/openai/realtime?api-version=${apiVersion}&deployment=sandbox/voice:free`;
  const socket = new WebSocket(url, { headers: { "api-key": testLlmKey } });
  const { data } = await new Promise<MessageEvent>((resolve, reject) => {
    socket.onmessage = resolve;
    socket.onerror = () => reject(new Error("the session was refused"));
  });
  socket.close();
  expect(at(JSON.parse(String(data)), "type")).toBe("session.created");
});

const missing = missingPackage("python", "openai");
test.skipIf(missing !== undefined)(
  `OpenAI's client for Azure of Python does the same${missing ? ` (missing: ${missing})` : ""}`,
  async () => {
    const script = join(import.meta.dir, "azure.py");
    const parameters = [gateway.origin, testLlmKey];
    expect(await runScript(script, { group: "python", parameters })).toEqual({
      model: chat,
      streamed: true,
      vectors: 2,
      completed: "text_completion",
      made: "PNG",
      edited: "PNG",
      spoken: "RIFF",
      transcribed: true,
      answered: "completed",
      listed: true,
      refused: "model_unavailable",
    });
  },
);
