import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatCompletion } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "./at.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
const model = (id: string): object => ({
  id,
  upstream_model: "qwen3",
  pricing: { prompt: "1", completion: "1" },
});

beforeAll(async () => {
  upstream = await startFaultUpstream();
  upstream.script(json(chatCompletion({ text: "So." })));
  const at = { base_url: upstream.baseUrl, api_key: "k" };
  gateway = await startGateway({
    providers: [
      provider({ ...at, id: "llama.cpp", models: [model("own/unknown")] }),
      provider({ ...at, id: "proxy", like: "openai", models: [model("own/proxied")] }),
      provider({
        ...at,
        id: "templated",
        deviations: ["system_only_first"],
        models: [model("own/templated")],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const wholeResponse = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "qwen3",
  status: "completed",
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "So.", annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const messages = [{ role: "user", content: "Hi" }];

test.each([
  ["/chat/completions", { messages, max_completion_tokens: 20 }],
  ["/messages", { messages, max_tokens: 20 }],
  ["/responses", { input: "Hi", max_output_tokens: 20 }],
] as const)(
  "%s sends the output limit under the name that the server supports",
  async (path, body) => {
    const sentTo = async (model: string): Promise<unknown> => {
      const response = await gateway.post(path, { ...body, model });
      expect([response.status, response.headers.get("x-service-translation-loss")]).toEqual([
        200,
        null,
      ]);
      return upstream.requests.at(-1)?.json();
    };
    const unknown = await sentTo("own/unknown");
    expect([at(unknown, "max_tokens"), at(unknown, "max_completion_tokens")]).toEqual([
      20,
      undefined,
    ]);
    // A provider like OpenAI is asked in the client's own dialect, as OpenAI is.
    const field = path === "/responses" ? "max_output_tokens" : "max_completion_tokens";
    upstream.enqueue(path === "/responses" ? json(wholeResponse) : json(chatCompletion({})));
    const proxied = await sentTo("own/proxied");
    expect([at(proxied, "max_tokens"), at(proxied, field)]).toEqual([undefined, 20]);
  },
);

test("a provider id with a dot can be used like any other", async () => {
  for (const preference of [{ only: ["llama.cpp"] }, { order: ["LLAMA.CPP"] }]) {
    const response = await gateway.post("/chat/completions", {
      messages,
      model: "own/unknown",
      provider: preference,
    });
    expect([response.status, response.headers.get("x-service-provider-chain")]).toEqual([
      200,
      "llama.cpp",
    ]);
  }
  expect(at(await (await gateway.get("/providers")).json(), "data")).toContainEqual(
    expect.objectContaining({ id: "llama.cpp" }),
  );
});

test("a configured deviation applies to clients of other dialects", async () => {
  const turns = [
    { role: "user", content: "Hi" },
    { role: "system", content: "Be brief." },
    { role: "user", content: "Go" },
  ];
  await gateway.post("/responses", { model: "own/templated", input: turns });
  const sent = at(upstream.requests.at(-1)?.json(), "messages");
  expect(sent).not.toContainEqual(expect.objectContaining({ role: "system" }));
});
