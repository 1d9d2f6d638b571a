import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";

/** The name as Ollama's lists have it: a model, or here the operator's name for one, with a tag. */
const model = "house:latest";
/** A PNG of one pixel. */
const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sandbox: true,
    providers: [],
    aliases: { house: "sandbox/chat:free", words: "sandbox/embed:free" },
    doors: { ollama: { key: testLlmKey, networks: [] } },
  });
});
afterAll(() => gateway.stop());

/** Asks without any credential, as these programs do. */
const ask = (method: string, path: string, body?: object): Promise<Response> =>
  fetch(gateway.origin + path, {
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const answer = async (method: string, path: string, body?: object): Promise<unknown> => {
  const response = await ask(method, path, body);
  expect([path, response.status]).toEqual([path, 200]);
  return response.json();
};

/** Returns the lines of a stream, each of which the client parses by itself. */
async function lines(path: string, body: object): Promise<unknown[]> {
  const response = await ask("POST", path, body);
  expect([path, response.status]).toEqual([path, 200]);
  const text = await response.text();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

const look = {
  type: "function",
  function: {
    name: "look",
    description: "Looks something up",
    parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
  },
};

describe("GitHub Copilot (microsoft/vscode-copilot-chat, ollamaProvider.ts, 2026)", () => {
  test("finds models by their version, list and details, and chats in OpenAI's dialect", async () => {
    const base = "/ollama";
    const version = textAt(await answer("GET", `${base}/api/version`), "version");
    const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
    expect(major * 10_000 + minor * 100 + patch).toBeGreaterThanOrEqual(604);
    const listed = listAt(await answer("GET", `${base}/api/tags`), "models");
    expect(listed.map((each) => at(each, "model"))).toContain(model);
    const shown = await answer("POST", `${base}/api/show`, { model });
    const info = at(shown, "model_info") as Record<string, unknown>;
    const architecture = String(info["general.architecture"]);
    expect(info[`${architecture}.context_length`]).toBeGreaterThan(4_096);
    expect(typeof info["general.basename"]).toBe("string");
    expect(listAt(shown, "capabilities")).toContain("tools");
    const asked = {
      model,
      messages: [
        { role: "system", content: "You are a coding assistant." },
        { role: "user", content: "hello" },
      ],
      tools: [look],
      temperature: 0.1,
      top_p: 1,
      n: 1,
      max_tokens: 4_096,
      stream: true,
      stream_options: { include_usage: true },
    };
    const streamed = await ask("POST", `${base}/v1/chat/completions`, asked);
    expect([streamed.status, streamed.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/event-stream"),
    ]);
    expect((await streamed.text()).trimEnd()).toEndWith("data: [DONE]");
    const whole = await answer("POST", `${base}/v1/chat/completions`, {
      ...asked,
      stream: false,
      stream_options: undefined,
    });
    expect(at(whole, "model")).toBe("sandbox/chat:free");
  });

  test("is not let in with a page's origin, and the path is not open to others", async () => {
    const body = JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] });
    const path = "/ollama/v1/chat/completions";
    for (const headers of [{ origin: "https://evil.example" }, { "x-forwarded-for": "10.0.0.1" }]) {
      const refused = await fetch(gateway.origin + path, { method: "POST", body, headers });
      expect(refused.status).toBe(401);
    }
    const withoutDoor = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: "POST",
      body,
    });
    expect(withoutDoor.status).toBe(401);
  });
});

describe("Zed (zed-industries/zed, crates/ollama, 2026)", () => {
  const asked = {
    model,
    stream: true,
    keep_alive: -1,
    options: { num_ctx: 16_384, num_predict: null, stop: [], temperature: 1, top_p: null },
    tools: [look],
    think: false,
  };

  test("reads lists and details into its own types", async () => {
    const [first] = listAt(await answer("GET", "/api/tags"), "models");
    for (const field of ["name", "modified_at", "digest"])
      expect(typeof at(first, field)).toBe("string");
    expect(Number.isInteger(at(first, "size"))).toBe(true);
    for (const field of ["format", "family", "parameter_size", "quantization_level"])
      expect(typeof at(first, `details.${field}`)).toBe("string");
    const shown = await answer("POST", "/api/show", { model });
    expect(listAt(shown, "capabilities").every((name) => typeof name === "string")).toBe(true);
  });

  test("streams a turn with tools and a picture, each line with a role, and continues", async () => {
    const user = { role: "user", content: "hello sandbox:calls=1", images: [picture] };
    const first = await lines("/api/chat", { ...asked, messages: [user] });
    for (const line of first) {
      expect(at(line, "message.role")).toBe("assistant");
      expect(typeof at(line, "message.content")).toBe("string");
      expect(typeof at(line, "created_at")).toBe("string");
    }
    expect(at(first.at(-1), "done")).toBe(true);
    const calls = first.flatMap((line) => (at(line, "message.tool_calls") ?? []) as unknown[]);
    expect(calls).toHaveLength(1);
    expect(at(calls[0], "function.arguments")).toBeObject();
    const rest = await lines("/api/chat", {
      ...asked,
      messages: [
        { role: "system", content: "Be brief." },
        user,
        { role: "assistant", content: "", tool_calls: calls, thinking: null },
        { role: "tool", tool_name: "look", content: "found" },
      ],
    });
    expect(rest.map((line) => at(line, "message.content")).join("")).not.toBe("");
  });
});

describe("Continue (continuedev/continue, core/llm/llms/Ollama.ts, 2026)", () => {
  const options = {
    temperature: 0.5,
    top_k: 40,
    num_predict: 64,
    stop: ["\n\n"],
    num_ctx: 8_192,
    mirostat: 0,
    num_thread: 4,
    use_mmap: true,
  };
  const asked = { model, options, keep_alive: 1_800 };

  test("asks for details by `name`, and reads parameters as a text", async () => {
    const shown = await answer("POST", "/api/show", { name: "house" });
    expect([typeof at(shown, "parameters"), typeof at(shown, "template")]).toEqual([
      "string",
      "string",
    ]);
  });

  test("chats in a stream, and whole with tools", async () => {
    const messages = [{ role: "user", content: "hello" }];
    const streamed = await lines("/api/chat", { ...asked, messages, stream: true });
    expect(streamed.some((line) => at(line, "error") !== undefined)).toBe(false);
    const whole = await answer("POST", "/api/chat", {
      ...asked,
      messages: [{ role: "user", content: "hello sandbox:calls=1" }],
      tools: [look],
      stream: false,
    });
    expect(listAt(whole, "message.tool_calls")).toHaveLength(1);
  });

  test("completes code before a suffix, raw, and embeds in batches", async () => {
    const completed = await lines("/api/generate", {
      ...asked,
      prompt: "def add(a, b):\n    ",
      suffix: "\nprint(add(1, 2))",
      raw: true,
      stream: true,
    });
    expect(completed.every((line) => typeof at(line, "response") === "string")).toBe(true);
    const embedded = await answer("POST", "/api/embed", {
      model: "words:latest",
      input: ["one", "two", "three"],
    });
    expect(listAt(embedded, "embeddings")).toHaveLength(3);
  });
});

describe("Home Assistant (home-assistant/core, components/ollama, 2026)", () => {
  const asked = {
    model,
    tools: [look],
    stream: true,
    keep_alive: -1,
    options: { num_ctx: 8_192 },
    think: false,
  };

  test("lists models, and talks over turns with results that name no tool", async () => {
    expect(listAt(await answer("GET", "/api/tags"), "models").length).toBeGreaterThan(0);
    const said = [
      { role: "system", content: "You control a house." },
      { role: "user", content: "hello sandbox:calls=2" },
    ];
    const first = await lines("/api/chat", { ...asked, messages: said });
    const calls = first.flatMap((line) => (at(line, "message.tool_calls") ?? []) as unknown[]);
    expect(calls).toHaveLength(2);
    const results = calls.map((_, index) => ({
      role: "tool",
      content: JSON.stringify({ data: { light: index }, error: null }),
    }));
    const rest = await lines("/api/chat", {
      ...asked,
      messages: [...said, { role: "assistant", content: "", tool_calls: calls }, ...results],
    });
    expect(rest.map((line) => at(line, "message.content")).join("")).not.toBe("");
    expect(at(rest.at(-1), "done_reason")).toBe("stop");
  });

  test("asks for data by a schema", async () => {
    const shaped = await lines("/api/chat", {
      ...asked,
      tools: undefined,
      messages: [{ role: "user", content: "hello", images: [picture] }],
      format: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      keep_alive: "30s",
    });
    const text = shaped.map((line) => at(line, "message.content")).join("");
    expect(JSON.parse(text)).toHaveProperty("name");
  });
});

test("the server says that it is running, at its address alone to programs alone", async () => {
  for (const path of ["/ollama", "/"])
    for (const method of ["GET", "HEAD"]) {
      const response = await ask(method, path);
      expect([path, method, response.status]).toEqual([path, method, 200]);
      if (method === "GET") expect(await response.text()).toBe("Ollama is running");
    }
  const page = await fetch(`${gateway.origin}/`, {
    headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
    redirect: "manual",
  });
  expect([page.status, page.headers.get("location")]).toEqual([303, "/sign-in"]);
});

test("models are loaded and unloaded where there are such, by every form of a duration", async () => {
  for (const [keepAlive, reason] of [
    [0, "unload"],
    ["0", "unload"],
    ["0s", "unload"],
    ["0m", "unload"],
    [undefined, "load"],
    [-1, "load"],
    ["10m", "load"],
  ] as const)
    for (const path of ["/api/generate", "/api/chat"])
      expect([
        keepAlive,
        await answer("POST", path, { model, messages: [], keep_alive: keepAlive }),
      ]).toMatchObject([keepAlive, { done: true, done_reason: reason }]);
  for (const [given, status] of [
    [{ model: "none" }, 404],
    [{}, 400],
    [{ model: 5 }, 400],
  ] as const) {
    const refused = await ask("POST", "/api/generate", given);
    expect([refused.status, typeof at(await refused.json(), "error")]).toEqual([status, "string"]);
  }
});

test("calls have ids, by which results are joined to them, and tokens their scores", async () => {
  const user = { role: "user", content: "hello sandbox:calls=2" };
  const whole = await answer("POST", "/api/chat", {
    ...{ model, messages: [user], tools: [look], stream: false },
  });
  const calls = listAt(whole, "message.tool_calls");
  const ids = calls.map((call) => textAt(call, "id"));
  expect(new Set(ids).size).toBe(2);
  const results = ids
    .toReversed()
    .map((id) => ({ role: "tool", tool_call_id: id, content: `of ${id}` }));
  await answer("POST", "/api/chat", {
    ...{ model, tools: [look], stream: false },
    messages: [user, { role: "assistant", content: "", tool_calls: calls }, ...results],
  });
  const streamed = await lines("/api/chat", { model, messages: [user], tools: [look] });
  const named = streamed.flatMap((line) => (at(line, "message.tool_calls") ?? []) as unknown[]);
  expect(named.map((call) => typeof at(call, "id"))).toEqual(["string", "string"]);
});

test("what changes models of a machine is refused in Ollama's form", async () => {
  for (const [method, path] of [
    ["POST", "/api/pull"],
    ["POST", "/ollama/api/create"],
    ["DELETE", "/api/delete"],
  ] as const) {
    const response = await ask(method, path, { model });
    expect([response.status, typeof at(await response.json(), "error")]).toEqual([404, "string"]);
  }
});
