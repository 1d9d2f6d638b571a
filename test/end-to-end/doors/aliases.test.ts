import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { openaiChatWire } from "../../support/upstream/openai-chat-wire.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { fieldsOf, listOf } from "../matrix/support/json-value.ts";

const priced = (id: string) => ({
  id,
  context_length: 100_000,
  pricing: { prompt: "1", completion: "1" },
});

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  upstream.script(json(openaiChatWire.whole));
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        dialect: "openai-chat",
        base_url: upstream.baseUrl,
        api_key: "k",
        models: ["acme/small", "acme/a", "acme/b"].map(priced),
      }),
    ],
    aliases: {
      fast: "acme/small",
      split: [
        { model: "acme/a", weight: 9 },
        { model: "acme/b", weight: 1 },
      ],
      smart: [
        { model: "acme/a", when: { header: { "x-team": "research" } } },
        { model: "acme/small" },
      ],
      only: [{ model: "acme/a", when: { tag: "eu" } }],
      "qwen3:latest": "acme/b",
    },
    plans: { enterprise: { perMinute: 1_000_000 } },
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

async function served(
  model: string,
  { body = {}, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
): Promise<{ model: string | null; id: string; status: number }> {
  const response = await gateway.post(
    "/chat/completions",
    { model, messages: [{ role: "user", content: "Hi" }], ...body },
    { headers },
  );
  const { id } = (await response.json()) as { id: string };
  return { model: response.headers.get("x-service-model"), id, status: response.status };
}

test("a name is asked for in every dialect, and the record says so", async () => {
  const { model, id } = await served("fast");
  expect(model).toBe("acme/small");
  const record = await (await gateway.get(`/generation/${id}`)).json();
  expect(record).toMatchObject({ data: { requested_model: "fast", model: "acme/small" } });
  const explained = await gateway.post("/routing/explain", {
    model: "fast",
    messages: [{ role: "user", content: "Hi" }],
  });
  expect(await explained.json()).toMatchObject({ requested_model: "fast" });
  for (const [path, body] of [
    ["/messages", { model: "FAST", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }],
    ["/responses", { model: "fast:floor", input: "Hi" }],
    ["/models/fast:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
  ] as const) {
    const response = await gateway.post(path, body);
    expect([response.status, response.headers.get("x-service-model")]).toEqual([200, "acme/small"]);
  }
});

test("a conversation keeps its side of a split", async () => {
  const seen = new Set<string | null>();
  for (let talk = 0; talk < 20; talk += 1) {
    const first = await served("split", { body: { session_id: `talk ${talk}` } });
    const second = await served("split", { body: { session_id: `talk ${talk}` } });
    expect(second.model).toBe(first.model);
    seen.add(first.model);
  }
  expect(seen).toContain("acme/a");
});

test("a condition decides, and a name without any that is met is refused", async () => {
  expect((await served("smart")).model).toBe("acme/small");
  expect((await served("smart", { headers: { "x-team": "research" } })).model).toBe("acme/a");
  expect((await served("only")).status).toBe(404);
  expect((await served("only", { headers: { "x-service-tags": "de, eu" } })).model).toBe("acme/a");
});

test("a name with the tag that Ollama's clients add is the same without it", async () => {
  for (const name of ["qwen3:latest", "qwen3", "Qwen3:floor"])
    expect([name, (await served(name)).model]).toEqual([name, "acme/b"]);
  const headers = { authorization: `Bearer ${testLlmKey}` };
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(gateway.origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  const messages = [{ role: "user", content: "Hi" }];
  const chat = await ask("/api/chat", { model: "qwen3:latest", messages, stream: false });
  expect([chat.status, chat.headers.get("x-service-model")]).toEqual([200, "acme/b"]);
  expect((await ask("/api/show", { model: "qwen3:latest" })).status).toBe(200);
});

describe("lists", () => {
  test("show the same name as the model itself does, in every form", async () => {
    const shown = async (path: string, headers: Record<string, string> = {}) =>
      fieldsOf(await (await gateway.get(path, headers)).json());
    expect(await shown("/models/fast")).toMatchObject({ id: "fast", alias_of: ["acme/small"] });
    expect((await shown("/models/fast", { "anthropic-version": "2023-06-01" })).id).toBe("fast");
    expect((await shown("/models/fast", { "x-goog-api-client": "x" })).name).toBe("models/fast");
  });

  test("show names beside models, in every form", async () => {
    const models = listOf(fieldsOf(await (await gateway.get("/models")).json()).data);
    expect(models.find(({ id }) => id === "split")).toMatchObject({
      object: "model",
      alias_of: ["acme/a", "acme/b"],
      context_length: 100_000,
    });
    const google = await gateway.get("/models", { "x-goog-api-client": "x" });
    expect(JSON.stringify(await google.json())).toContain('"models/fast"');
    const anthropic = await gateway.get("/models", { "anthropic-version": "2023-06-01" });
    expect(JSON.stringify(await anthropic.json())).toContain('"fast"');
  });
});
