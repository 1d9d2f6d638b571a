import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import {
  googleGenai,
  googleGenaiVersions,
  hasGoogleGenai,
  type GoogleAnswer,
  type GoogleClient,
} from "../clients/support/google-genai.ts";
import { testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { fieldsOf, listOf, type Fields } from "../matrix/support/json-value.ts";

const model = "sandbox/chat:free";
const parameters = { type: "OBJECT", properties: { q: { type: "STRING" } } };
const tools = [{ functionDeclarations: [{ name: "look", parameters }] }];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true, providers: [] });
});
afterAll(() => gateway.stop());

describe.each(googleGenaiVersions)("@google/genai in %s", (folder, _version) => {
  const inFolder = hasGoogleGenai(folder) ? test : test.skip;

  const client = (): Promise<GoogleClient> =>
    googleGenai(folder, { origin: gateway.origin, apiKey: testLlmKey, retries: 0 });

  inFolder("asks whole and streamed, and counts and embeds", async () => {
    const { models } = await client();
    const whole = await models.generateContent({ model, contents: "hello" });
    expect(whole.usageMetadata?.totalTokenCount).toBeGreaterThan(0);
    let text = "";
    let last: GoogleAnswer = {};
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

  inFolder("keeps a conversation whose turns were streamed", async () => {
    const config = { tools, thinkingConfig: { includeThoughts: true } };
    const chat = (await client()).chats.create({ model, config });
    const calls: { id?: string; name?: string }[] = [];
    const first = await chat.sendMessageStream({ message: "find sandbox:calls=2" });
    for await (const chunk of first) calls.push(...(chunk.functionCalls ?? []));
    const message = calls.map(({ id, name }) => ({
      functionResponse: { id, name, response: { output: "found" } },
    }));
    let text = "";
    for await (const chunk of await chat.sendMessageStream({ message })) text += chunk.text ?? "";
    expect([calls.length, text === ""]).toEqual([2, false]);
    expect((await chat.sendMessage({ message: "And again?" })).text).not.toBe("");
  });

  inFolder("lists models page by page, and shows one", async () => {
    const { models } = await client();
    const names = async (pageSize: number): Promise<unknown[]> => {
      const listed: unknown[] = [];
      for await (const each of await models.list({ config: { pageSize } })) listed.push(each.name);
      return listed;
    };
    const all = await names(50);
    expect(all).toContain(`models/${model}`);
    expect(await names(2)).toEqual(all);
    expect((await models.get({ model })).name).toBe(`models/${model}`);
    expect(await statusOf(models.get({ model: "acme/none" }))).toBe(404);
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
