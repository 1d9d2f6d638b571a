import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import {
  startStrictUpstream,
  type StrictUpstream,
} from "../../support/strict-vendors/strict-upstream.ts";
import { at } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";

const priced = (id: string) => ({
  id,
  context_length: 32_768,
  pricing: { prompt: "1000", completion: "2000" },
});

const named = (name: string, upstreamModel: string) => ({
  ...priced(`house/${name}`),
  upstream_model: upstreamModel,
  pricing: { prompt: "1", completion: "2" },
});

const management = {
  headers: { authorization: "Bearer ak_test_management_key_with_all_scopes" },
};

let upstream: StrictUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startStrictUpstream();
  gateway = await startGateway({
    providers: [
      provider({
        id: "llama-cpp",
        name: "llama.cpp",
        dialect: "openai-chat",
        base_url: upstream.baseUrl("llama-cpp"),
        api_key: "k",
        deviations: ["llama_cpp_completions"],
        models: [priced("house/gpt-oss-20b"), priced("house/both")],
      }),
      provider({
        id: "own-vllm",
        like: "vllm",
        base_url: upstream.baseUrl("vllm"),
        api_key: "k",
        models: [priced("house/qwen")],
      }),
      provider({
        id: "deepseek",
        base_url: upstream.baseUrl("deepseek"),
        api_key: "k",
        models: [named("fim", "deepseek-v4-flash"), named("reasoner", "deepseek-reasoner")],
      }),
      provider({
        id: "mistral",
        base_url: upstream.baseUrl("mistral"),
        api_key: "k",
        models: [named("code", "codestral-latest")],
      }),
      provider({
        id: "openai",
        base_url: upstream.baseUrl("openai"),
        api_key: "k",
        models: [named("instruct", "gpt-3.5-turbo-instruct"), named("chat", "gpt-5.5")],
      }),
      provider({
        id: "fireworks",
        base_url: upstream.baseUrl("fireworks"),
        api_key: "k",
        models: [named("fireworks", "accounts/fireworks/models/own")],
      }),
      provider({
        id: "together",
        base_url: upstream.baseUrl("together"),
        api_key: "k",
        models: [named("together", "meta-llama/own")],
      }),
      provider({
        id: "openrouter",
        base_url: upstream.baseUrl("openrouter"),
        api_key: "k",
        models: [priced("house/routed")],
      }),
      provider({
        id: "hosted",
        dialect: "openai-chat",
        base_url: upstream.baseUrl("groq"),
        api_key: "k",
        models: [priced("house/chat-only"), priced("house/both")],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});
beforeEach(() => upstream.forget());

const client = (): OpenAI => new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl });
const sent = () => upstream.received.at(-1);

/** Returns the texts of a stream by choice, and its last usage. */
async function streamed(
  body: object,
): Promise<{ texts: string[]; usage: unknown; ends: unknown[] }> {
  const texts: string[] = [];
  const ends: unknown[] = [];
  let usage: unknown;
  const request = { ...body, stream: true } as OpenAI.CompletionCreateParamsStreaming;
  for await (const chunk of await client().completions.create(request)) {
    expect(chunk.object).toBe("text_completion");
    for (const { index, text, finish_reason: end } of chunk.choices) {
      texts[index] = (texts[index] ?? "") + text;
      if (end) ends[index] = end;
    }
    usage = chunk.usage ?? usage;
  }
  return { texts, usage, ends };
}

describe("llama.cpp's server", () => {
  const model = "house/gpt-oss-20b";

  test("is sent the prompt itself, whole, and its usage is charged", async () => {
    const { data, response } = await client()
      .completions.create({ model, prompt: "Once upon", max_tokens: 9, temperature: 0.2 })
      .withResponse();
    expect(response.headers.get("x-service-translation-loss")).toBeNull();
    expect(sent()).toMatchObject({
      path: "/llama-cpp/completions",
      body: { model: "gpt-oss-20b", prompt: "Once upon", max_tokens: 9, temperature: 0.2 },
    });
    expect(data).toMatchObject({
      object: "text_completion",
      model,
      choices: [{ text: "Understood.", index: 0, finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 3, cost: 0.011 },
    });
    expect(data.id).toStartWith("cmpl-");
    const record: unknown = await (await gateway.get(`/generation/${data.id}`)).json();
    expect(at(record, "data")).toMatchObject({ surface: "completions", total_cost: 0.011 });
  });

  test("streams the same, with its usage", async () => {
    const asked = { model, prompt: "Once upon" };
    const { texts, usage, ends } = await streamed(asked);
    expect([texts, ends]).toEqual([["Understood."], ["stop"]]);
    expect(usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 3, cost: 0.011 });
    expect(sent()?.body).toMatchObject({ max_tokens: 16, stream_options: { include_usage: true } });
  });

  test("is never sent what it refuses: the gateway echoes, and names what is lost", async () => {
    const asked = { model, prompt: "Once upon", echo: true, suffix: "The end.", best_of: 2 };
    const { data, response } = await client().completions.create(asked).withResponse();
    expect(data.choices[0]?.text).toBe("Once uponUnderstood.");
    const lost = response.headers.get("x-service-translation-loss") ?? "";
    expect(lost.split(/,\s*/).sort()).toEqual(["best_of", "suffix"]);
    expect((await streamed({ model, prompt: "Once upon", echo: true })).texts).toEqual([
      "Once uponUnderstood.",
    ]);
    await client().completions.create({ model, prompt: "Hi", suffix: null, echo: false });
    expect(upstream.refusals).toEqual([]);
  });

  test.each<[what: string, prompt: string | string[] | number[] | number[][], count: number]>([
    ["a list of texts", ["One", "Two", "Three"], 3],
    ["token ids", [1, 2, 3, 4], 1],
    [
      "lists of token ids",
      [
        [1, 2],
        [3, 4],
      ],
      2,
    ],
  ])("takes %s", async (_, prompt, count) => {
    const whole = await client().completions.create({ model, prompt });
    expect(sent()?.body["prompt"]).toEqual(prompt);
    expect(whole.choices.map(({ text, index }) => [index, text])).toEqual(
      Array.from({ length: count }, (__, index) => [index, "Understood."]),
    );
    expect(whole.usage).toMatchObject({ prompt_tokens: 5 * count, completion_tokens: 3 * count });
    expect((await streamed({ model, prompt })).texts).toHaveLength(count);
  });

  test("answers log probabilities in the older form", async () => {
    const whole = await client().completions.create({ model, prompt: "Hi", logprobs: 1 });
    expect(sent()?.body["logprobs"]).toBe(1);
    expect(whole.choices[0]?.logprobs).toEqual({
      tokens: ["Understood."],
      token_logprobs: [-0.5],
      top_logprobs: [{ "Understood.": -0.5 }],
      text_offset: [0],
    });
  });
});

describe("a server that is like vLLM", () => {
  const model = "house/qwen";

  test("is sent everything, and begins with the prompt itself", async () => {
    const asked = { model, prompt: "Once upon", echo: true, suffix: "The end.", best_of: 2, n: 2 };
    const { data, response } = await client().completions.create(asked).withResponse();
    expect(response.headers.get("x-service-translation-loss")).toBeNull();
    expect(sent()?.body).toMatchObject({ ...asked, model: "qwen" });
    expect(data.choices.map(({ text }) => text)).toEqual([
      "Once uponUnderstood.",
      "Once uponUnderstood.",
    ]);
    expect((await streamed(asked)).texts).toEqual(["Once uponUnderstood.", "Once uponUnderstood."]);
  });

  test("scores a prompt without generating", async () => {
    const asked = { model, prompt: "Once upon", echo: true, max_tokens: 0, logprobs: 1 };
    const whole = await client().completions.create(asked);
    expect(sent()?.body["max_tokens"]).toBe(0);
    expect(whole.choices[0]).toMatchObject({
      text: "Once upon",
      logprobs: { tokens: ["Once upon"], text_offset: [0] },
    });
    expect(whole.usage).toMatchObject({ completion_tokens: 0, cost: 0.005 });
  });

  test("does not see what is the gateway's, and gets a preset's settings", async () => {
    const config = { model, temperature: 0.3 };
    await gateway.post("/presets", { slug: "cold", name: "Cold", config }, management);
    const body = { model: "@preset/cold", prompt: "Hi", session_id: "s", provider: { zdr: false } };
    expect((await gateway.post("/completions", body)).status).toBe(200);
    expect(sent()?.body).toEqual({ model: "qwen", prompt: "Hi", temperature: 0.3, max_tokens: 16 });
  });
});

describe("Mistral's completions of the middle of a text", () => {
  const asked = { prompt: "def add(a, b):", suffix: "print(add(1, 2))" };

  test.each([
    ["codestral-latest", "house/code", "/mistral/fim/completions", ""],
    ["DeepSeek's beta", "house/fim", "/deepseek/beta/completions", "seed"],
    ["a chat", "house/chat-only", "/groq/chat/completions", "prompt, suffix"],
  ])("reach %s, and are answered as a chat", async (_, model, path, losses) => {
    const response = await gateway.post("/fim/completions", { model, ...asked, random_seed: 3 });
    expect([response.status, await response.json()]).toMatchObject([
      200,
      {
        object: "chat.completion",
        model,
        choices: [{ index: 0, message: { role: "assistant", content: "Understood." } }],
      },
    ]);
    expect(sent()?.path).toBe(path);
    expect(sent()?.body).not.toMatchObject({ max_tokens: 16 });
    expect(response.headers.get("x-service-translation-loss") ?? "").toBe(losses);
    const stream = await gateway.post("/fim/completions", { model, ...asked, stream: true });
    const chunks = [...(await stream.text()).matchAll(/^data: (\{.*)$/gm)].map(
      ([, data = ""]): unknown => JSON.parse(data),
    );
    expect(chunks.map((chunk) => at(chunk, "choices.0.delta.content") ?? "").join("")).toBe(
      "Understood.",
    );
    expect(upstream.refusals).toEqual([]);
  });

  test.each([
    ["vLLM", "house/qwen", "echo"],
    ["codestral-latest", "house/code", "echo"],
    ["a chat", "house/chat-only", "echo, prompt"],
  ])("never begin with the prompt at %s, which is named", async (_, model, losses) => {
    const { prompt } = asked;
    const response = await gateway.post("/fim/completions", { model, prompt, echo: true });
    expect(at(await response.json(), "choices.0.message.content")).toBe("Understood.");
    expect(response.headers.get("x-service-translation-loss")).toBe(losses);
    expect(at(sent()?.body, "echo")).toBeUndefined();
  });

  test.each([
    ["the cap of a preset", "house/code", { max_completion_tokens: 50 }, 50],
    ["none at all, where 16 tokens are the vendor's default", "house/qwen", {}, 1_024],
  ])("are sent %s as max_tokens", async (_, model, cap, sentCap) => {
    const slug = `middle-${sentCap}`;
    const config = { model, ...cap };
    const preset = await gateway.post("/presets", { slug, name: slug, config }, management);
    expect(preset.status).toBe(200);
    const body = { model: `@preset/${slug}`, prompt: asked.prompt };
    expect((await gateway.post("/fim/completions", body)).status).toBe(200);
    expect(at(sent()?.body, "max_tokens")).toBe(sentCap);
  });
});

describe("hosted vendors with an endpoint of their own", () => {
  const asked = { prompt: "def add(a, b):", suffix: "print(add(1, 2))", max_tokens: 9_000 };
  const lossOf = (response: Response): string[] =>
    (response.headers.get("x-service-translation-loss") ?? "").split(/,\s*/).sort();

  test("DeepSeek's beta is sent prompt and suffix, and no more tokens than it gives", async () => {
    const model = "house/fim";
    const { data, response } = await client()
      .completions.create({ model, ...asked, seed: 3, user: "u", echo: true })
      .withResponse();
    expect(sent()).toMatchObject({
      path: "/deepseek/beta/completions",
      body: { model: "deepseek-v4-flash", ...asked, max_tokens: 4_096, echo: true },
    });
    expect(data.choices[0]?.text).toBe("def add(a, b):Understood.");
    expect(lossOf(response)).toEqual(["max_tokens", "seed", "user"]);
    expect((await streamed({ model, ...asked })).texts).toEqual(["Understood."]);
    await client().completions.create({ model: "house/reasoner", prompt: "Hi" });
    expect(sent()?.path).toBe("/deepseek/chat/completions");
    expect(upstream.refusals).toEqual([]);
  });

  test("Mistral's codestral is sent them by its own names, and answers as a chat does", async () => {
    const model = "house/code";
    const { data, response } = await client()
      .completions.create({ model, ...asked, seed: 3, n: 1, echo: true, logprobs: 2 })
      .withResponse();
    expect(sent()).toMatchObject({
      path: "/mistral/fim/completions",
      body: { model: "codestral-latest", prompt: asked.prompt, random_seed: 3 },
    });
    expect(data).toMatchObject({
      object: "text_completion",
      choices: [{ text: "def add(a, b):Understood.", finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 3 },
    });
    expect(lossOf(response)).toEqual(["logprobs"]);
    const whole = await streamed({ model, ...asked });
    expect([whole.texts, whole.ends]).toEqual([["Understood."], ["stop"]]);
    expect(whole.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 3 });
    expect(upstream.refusals).toEqual([]);
  });

  test("OpenAI's is asked for its instruct model alone", async () => {
    await client().completions.create({ model: "house/instruct", prompt: ["One", "Two"] });
    expect(sent()?.path).toBe("/openai/completions");
    await client().completions.create({ model: "house/chat", prompt: "Hi" });
    expect(sent()?.path).toMatch(/^\/openai\/(?:chat\/completions|responses)$/);
    expect(upstream.refusals).toEqual([]);
  });

  test("Fireworks' takes lists and token ids, and is never sent a member that it does not know", async () => {
    const model = "house/fireworks";
    const more = { best_of: 2, suffix: "The end.", seed: 3, logprobs: 2 };
    const { data, response } = await client()
      .completions.create({ model, prompt: ["One", "Two"], ...more })
      .withResponse();
    expect(sent()?.path).toBe("/fireworks/completions");
    expect(sent()?.body).toMatchObject({ prompt: ["One", "Two"], seed: 3, logprobs: 2 });
    expect([data.choices.length, lossOf(response)]).toEqual([2, ["best_of", "suffix"]]);
    const { texts, usage } = await streamed({ model, prompt: [1, 2, 3] });
    expect([texts, usage]).toMatchObject([["Understood."], { completion_tokens: 3 }]);
    expect(upstream.refusals).toEqual([]);
  });

  test("Together's takes one text, its stops as a list, and no suffix", async () => {
    const model = "house/together";
    const { response } = await client()
      .completions.create({ model, prompt: ["Hi"], stop: ".", suffix: "!", n: 2 })
      .withResponse();
    expect(sent()?.body).toMatchObject({ prompt: "Hi", stop: ["."], n: 2 });
    expect(lossOf(response)).toEqual(["suffix"]);
    expect((await streamed({ model, prompt: "Hi" })).texts).toEqual(["Understood."]);
    const refused = await gateway.post("/completions", { model, prompt: ["a", "b"] });
    expect((await errorOf(refused)).param).toBe("prompt");
    expect(upstream.refusals).toEqual([]);
  });

  test("OpenRouter's takes one text, and lists are refused before it is asked", async () => {
    const model = "house/routed";
    const { choices } = await client().completions.create({ model, prompt: "Hi", suffix: "!" });
    expect([sent()?.path, choices[0]?.text]).toEqual(["/openrouter/completions", "Understood."]);
    const refused = await errorOf(
      await gateway.post("/completions", { model, prompt: ["a", "b"] }),
    );
    expect([refused.status, refused.param]).toEqual([400, "prompt"]);
    expect(upstream.refusals).toEqual([]);
  });
});

describe("elsewhere", () => {
  test("a completion is a chat, and what chat cannot answer is refused", async () => {
    const whole = await client()
      .completions.create({ model: "house/chat-only", prompt: "Hi" })
      .withResponse();
    expect(sent()?.path).toBe("/groq/chat/completions");
    expect(whole.response.headers.get("x-service-translation-loss")).toBe("prompt");
    for (const [body, param] of [
      [{ prompt: ["One", "Two"] }, "prompt"],
      [{ prompt: [1, 2] }, "prompt"],
      [{ prompt: "Hi", max_tokens: 0 }, "max_tokens"],
      [{ prompt: [] }, "prompt"],
      [{ prompt: [["a"]] }, "prompt"],
      [{ prompt: {} }, "prompt"],
      [{}, "prompt"],
      [{ prompt: "Hi", best_of: 500 }, "best_of"],
      [{ prompt: "Hi", best_of: 1, n: 2 }, "best_of"],
      [{ prompt: "Hi", n: 0 }, "n"],
      [{ prompt: "Hi", max_tokens: "5" }, "max_tokens"],
      [{ prompt: "Hi", max_tokens: -1 }, "max_tokens"],
      [{ prompt: "Hi", logprobs: true }, "logprobs"],
      [{ prompt: "Hi", logprobs: 21 }, "logprobs"],
      [{ prompt: "Hi", echo: "yes" }, "echo"],
      [{ prompt: "Hi", suffix: 1 }, "suffix"],
    ] as const) {
      const refused = await errorOf(
        await gateway.post("/completions", { model: "house/chat-only", ...body }),
      );
      expect([body, refused.status, refused.param]).toEqual([body, 400, param]);
    }
  });

  test("a model of both kinds of providers goes to the one that can answer", async () => {
    for (let count = 0; count < 4; count += 1)
      await client().completions.create({ model: "house/both", prompt: ["One", "Two"] });
    expect(new Set(upstream.received.map(({ path }) => path))).toEqual(
      new Set(["/llama-cpp/completions"]),
    );
  });
});
