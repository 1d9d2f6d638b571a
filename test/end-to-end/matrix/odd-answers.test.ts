import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatCompletion } from "../../support/upstream/openai-chat-fixtures.ts";
import { body, end, head, json } from "../../support/upstream/steps.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [{ id: "acme/large", pricing: { prompt: "1", completion: "2" } }],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const ask = (path: string): Promise<Response> =>
  gateway.post(path, {
    model: "acme/large",
    max_tokens: 100,
    messages: [{ role: "user", content: "Hi" }],
  });

for (const path of ["/chat/completions", "/messages"]) {
  test(`${path}: a byte order mark before the answer is skipped`, async () => {
    upstream.script([
      head({ headers: { "content-type": "application/json" } }),
      body(`\uFEFF${JSON.stringify(chatCompletion())}`),
      end(),
    ]);
    const answer = await ask(path);
    expect([answer.status, (await answer.text()).charAt(0)]).toEqual([200, "{"]);
  });

  test(`${path}: an error beside empty choices is the error`, async () => {
    upstream.script(
      json({ ...chatCompletion(), choices: [], error: { message: "Quota is used up", code: 429 } }),
    );
    const answer = await ask(path);
    expect([answer.status, await answer.text()]).toEqual([
      429,
      expect.stringContaining("Quota is used up"),
    ]);
  });
}

test("cached tokens that the total shows beside the prompt are charged", async () => {
  upstream.script(
    json({
      ...chatCompletion(),
      usage: {
        prompt_tokens: 100,
        completion_tokens: 10,
        total_tokens: 1_110,
        prompt_tokens_details: { cached_tokens: 1_000 },
      },
    }),
  );
  const { usage } = (await (await ask("/chat/completions")).json()) as { usage: { cost: number } };
  expect(usage.cost).toBeCloseTo((1_100 + 20) / 1e6, 12);
});
