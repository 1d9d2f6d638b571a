import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { fieldsOf, listOf, type Fields } from "../matrix/support/json-value.ts";

/** The parts of an answer that are read here; every version of the client has them. */
interface Answer {
  text?: string;
  functionCalls?: { id?: string; name?: string }[];
  candidates?: { finishReason?: string; content?: { parts?: { thought?: boolean }[] } }[];
  usageMetadata?: { totalTokenCount?: number };
}

/** The parts of Google's client that are used here. */
interface GoogleClient {
  models: {
    generateContent(asked: object): Promise<Answer>;
    generateContentStream(asked: object): Promise<AsyncIterable<Answer>>;
    embedContent(asked: object): Promise<{ embeddings?: { values?: number[] }[] }>;
    countTokens(asked: object): Promise<{ totalTokens?: number }>;
  };
  chats: { create(options: object): { sendMessage(said: object): Promise<Answer> } };
}

const folders = ["google-genai-1", "google-genai-2", "google-genai-3"].map((name) =>
  join(testClientsFolder, name, "node_modules", "@google", "genai"),
);
const model = "sandbox/chat:free";
const parameters = { type: "OBJECT", properties: { q: { type: "STRING" } } };
const tools = [{ functionDeclarations: [{ name: "look", parameters }] }];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true, providers: [] });
});
afterAll(() => gateway.stop());

describe.each(folders)("the client in %s", (folder) => {
  const inFolder = existsSync(folder) ? test : test.skip;

  const client = async (): Promise<GoogleClient> => {
    const { GoogleGenAI } = (await import(Bun.resolveSync(folder, folder))) as {
      GoogleGenAI: new (options: object) => GoogleClient;
    };
    return new GoogleGenAI({ apiKey: testLlmKey, httpOptions: { baseUrl: gateway.origin } });
  };

  inFolder("asks whole and streamed, and counts and embeds", async () => {
    const { models } = await client();
    const whole = await models.generateContent({ model, contents: "hello" });
    expect(whole.usageMetadata?.totalTokenCount).toBeGreaterThan(0);
    let text = "";
    let last: Answer = {};
    for await (const chunk of await models.generateContentStream({ model, contents: "hello" })) {
      text += chunk.text ?? "";
      last = chunk;
    }
    expect([text, last.candidates?.[0]?.finishReason]).toEqual([whole.text ?? "", "STOP"]);
    expect((await models.countTokens({ model, contents: "hello" })).totalTokens).toBeGreaterThan(0);
    const asked = { model: "sandbox/embed:free", contents: ["a", "b"] };
    expect((await models.embedContent(asked)).embeddings).toHaveLength(2);
  });

  inFolder("calls tools over several turns, with thoughts", async () => {
    const config = { tools, thinkingConfig: { includeThoughts: true } };
    const chat = (await client()).chats.create({ model, config });
    const first = await chat.sendMessage({ message: "find sandbox:calls=2" });
    expect(first.functionCalls?.map(({ name }) => name)).toEqual(["look", "look"]);
    const message = (first.functionCalls ?? []).map(({ id, name }) => ({
      functionResponse: { id, name, response: { output: "found" } },
    }));
    expect((await chat.sendMessage({ message })).text).not.toBe("");
  });

  inFolder("throws for an error within a stream, and for a refusal", async () => {
    const { models } = await client();
    const read = async (contents: string): Promise<void> => {
      for await (const _ of await models.generateContentStream({ model, contents }));
    };
    expect(await statusOf(read("sandbox:error_after=3"))).toBe(502);
    expect(await statusOf(read("sandbox:status=429"))).toBe(429);
  });
});

const statusOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no error",
    (error: unknown) => fieldsOf(error as Fields).status,
  );

test("Ollama's client chats, streams and calls tools", async () => {
  const folder = join(testClientsFolder, "ollama", "node_modules", "ollama");
  if (!existsSync(folder)) return;
  const { Ollama } = (await import(Bun.resolveSync(folder, folder))) as {
    Ollama: new (
      options: object,
    ) => {
      chat(asked: object): Promise<Fields & AsyncIterable<Fields>>;
    };
  };
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const ollama = new Ollama({ host: gateway.origin, headers });
  const messages = [{ role: "user", content: "hello sandbox:calls=1" }];
  const offered = [
    { type: "function", function: { name: "look", parameters: { type: "object" } } },
  ];
  const calls: Fields[] = [];
  const asked = { model, messages, tools: offered, stream: true };
  for await (const line of await ollama.chat(asked))
    calls.push(...listOf(fieldsOf(line.message).tool_calls));
  expect(calls).toMatchObject([{ function: { name: "look", arguments: {} } }]);
});
