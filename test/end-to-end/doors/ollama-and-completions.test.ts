import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { AzureOpenAI } from "openai";
import { doorKeyFor } from "../../../src/access/door-keys.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { fieldsOf, listOf, type Fields } from "../matrix/support/json-value.ts";

const model = "sandbox/chat:free";
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sandbox: true,
    providers: [],
    doors: { ollama: { key: testLlmKey, networks: [] } },
  });
});
afterAll(() => gateway.stop());

const ask = (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(gateway.origin + path, { method: "POST", body: JSON.stringify(body), headers });

const lines = async (response: Response): Promise<Fields[]> =>
  (await response.text())
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => fieldsOf(JSON.parse(line)));

const hello = [{ role: "user", content: "hello" }];

describe("Ollama's form", () => {
  test("streams lines by default, the last with counts and durations in nanoseconds", async () => {
    const response = await ask("/api/chat", { model: `${model}:latest`, messages: hello });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const all = await lines(response);
    expect(all.slice(0, -1).every(({ done }) => done === false)).toBe(true);
    expect(all.at(-1)).toMatchObject({ done: true, done_reason: "stop", cost: 0 });
    expect(all.at(-1)?.eval_count).toBeGreaterThan(0);
    expect(all.at(-1)?.total_duration).toBeGreaterThan(100_000);
    const whole = await ask("/api/chat", { model, messages: hello, stream: false });
    const { eval_count: tokens, eval_duration: nanoseconds } = fieldsOf(await whole.clone().json());
    expect(Number(tokens) / Number(nanoseconds)).toBeLessThan(1);
    const said = all.map(({ message }) => fieldsOf(message).content).join("");
    expect(await whole.json()).toMatchObject({ message: { role: "assistant", content: said } });
  });

  test("has arguments of tools as objects, and joins results to them by name", async () => {
    const tools = [
      {
        type: "function",
        function: {
          name: "look",
          parameters: { type: "object", properties: { q: { type: "string" } } },
        },
      },
    ];
    const asked = [{ role: "user", content: "hello sandbox:calls=2" }];
    const all = await lines(await ask("/api/chat", { model, messages: asked, tools }));
    const calls = all.flatMap(({ message }) => listOf(fieldsOf(message).tool_calls));
    expect(calls).toHaveLength(2);
    expect(fieldsOf(calls[0]?.function)).toEqual({
      name: "look",
      arguments: { q: expect.any(String) },
    });
    const results = ["a", "b"].map((content) => ({ role: "tool", tool_name: "look", content }));
    const answered = await ask("/api/chat", {
      model,
      stream: false,
      messages: [...asked, { role: "assistant", content: "", tool_calls: calls }, ...results],
      tools,
    });
    expect(fieldsOf(fieldsOf(await answered.json()).message).content).not.toBe("");
  });

  test("generates, thinks, keeps to a schema and loads", async () => {
    const generated = await ask("/api/generate", {
      model,
      prompt: "hello",
      system: "Be brief.",
      think: true,
      stream: false,
      options: { num_predict: 40, mirostat: 1 },
    });
    expect(generated.headers.get("x-service-translation-loss")).toContain("options.mirostat");
    expect(await generated.json()).toMatchObject({
      response: expect.any(String),
      thinking: expect.any(String),
    });
    const shaped = await ask("/api/chat", {
      model,
      messages: hello,
      stream: false,
      format: { type: "object", properties: { a: { type: "string" } } },
    });
    for (const format of ["xml", ["json"]])
      expect((await ask("/api/chat", { model, messages: hello, format })).status).toBe(400);
    const { content } = fieldsOf(fieldsOf(await shaped.json()).message);
    expect(JSON.parse(String(content))).toHaveProperty("a");
    expect(await (await ask("/api/generate", { model, keep_alive: 0 })).json()).toMatchObject({
      done: true,
      done_reason: "unload",
    });
  });

  test("lists, shows and embeds", async () => {
    const tags = fieldsOf(await (await fetch(`${gateway.origin}/api/tags`)).json());
    expect(listOf(tags.models).map(({ name }) => name)).toContain(model);
    expect(await (await ask("/api/show", { model })).json()).toMatchObject({
      model_info: { "sandbox.context_length": 131_072 },
      capabilities: expect.arrayContaining(["completion", "tools"]),
    });
    const embedded = await ask("/api/embed", { model: "sandbox/embed:free", input: ["a", "b"] });
    expect(fieldsOf(await embedded.json()).embeddings).toHaveLength(2);
    const version = await (await fetch(`${gateway.origin}/ollama/api/version`)).json();
    expect(fieldsOf(version).version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test("has its own errors, and no key for pages, proxies or foreign addresses", async () => {
    const missing = await ask("/api/chat", { model: "nope/none", messages: hello });
    expect([missing.status, await missing.json()]).toMatchObject([
      404,
      { error: expect.any(String) },
    ]);
    for (const headers of [{ origin: "https://evil.example" }, { "x-forwarded-for": "10.0.0.1" }])
      expect((await ask("/api/chat", { model, messages: hello }, headers)).status).toBe(401);
    const doors = { ollama: { key: "k", networks: ["10.1.0.0/16"] } };
    const keyAt = (address: string, host: string): string | undefined =>
      doorKeyFor(doors, {
        door: "ollama",
        address,
        request: { headers: new Headers({ host }) },
        isProxyTrusted: false,
      });
    expect(keyAt("10.1.2.3", "10.1.0.1:8787")).toBe("k");
    expect(keyAt("::ffff:127.0.0.1", "localhost:8787")).toBe("k");
    for (const isProxyTrusted of [false, true])
      for (const name of ["x-real-ip", "forwarded", "x-forwarded-proto", "cf-connecting-ip"])
        expect(
          doorKeyFor(doors, {
            ...{ door: "ollama", address: "127.0.0.1", isProxyTrusted },
            request: { headers: new Headers({ host: "localhost", [name]: "203.0.113.9" }) },
          }),
        ).toBeUndefined();
    expect(keyAt("10.2.2.3", "10.1.0.1:8787")).toBeUndefined();
    expect(keyAt("127.0.0.1", "rebound.example")).toBeUndefined();
    expect(
      (
        await gateway.post(
          "/chat/completions",
          { model, messages: hello },
          { headers: { authorization: "" } },
        )
      ).status,
    ).toBe(401);
  });
});

test("Azure's client asks for a deployment by the name of a model", async () => {
  const client = new AzureOpenAI({
    apiKey: testLlmKey,
    endpoint: gateway.origin,
    apiVersion: "2024-10-21",
    deployment: model,
  });
  const asked = { model: "ignored", messages: [{ role: "user" as const, content: "hello" }] };
  const whole = await client.chat.completions.create(asked);
  expect([whole.model, whole.choices[0]?.finish_reason]).toEqual([model, "stop"]);
  let text = "";
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
    text += chunk.choices[0]?.delta.content ?? "";
  expect(text).toBe(whole.choices[0]?.message.content ?? "");
});

describe("plain completions", () => {
  const client = () => new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl });

  test("are a chat in the older form, whole and streamed", async () => {
    const asked = { model, prompt: "Once upon", max_tokens: 30, echo: true };
    const { data, response } = await client().completions.create(asked).withResponse();
    expect(response.headers.get("x-service-translation-loss")).toBe("prompt");
    expect(data).toMatchObject({ object: "text_completion", choices: [{ index: 0 }] });
    expect(data.choices[0]?.text).toStartWith("Once upon[simulated");
    let text = "";
    for await (const chunk of await client().completions.create({ ...asked, stream: true }))
      text += chunk.choices[0]?.text ?? "";
    expect(text).toBe(data.choices[0]?.text ?? "");
  });

  test("refuse several prompts", async () => {
    const refused = await gateway.post("/completions", { model, prompt: ["a", "b"] });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: "unsupported_content", param: "prompt" } },
    ]);
  });
});
