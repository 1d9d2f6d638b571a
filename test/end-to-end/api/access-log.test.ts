import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AccessLog, asJsonLines } from "../../../src/app/access-log.ts";
import { systemClock } from "../../../src/platform/kernel/clock.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";

describe("the access log", () => {
  const lines: string[] = [];
  let upstream: FaultUpstream;
  let gateway: TestGateway;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    const models = [{ id: "acme/small", pricing: { prompt: "1", completion: "1" } }];
    gateway = await startGateway(
      {
        providers: [provider({ id: "acme", base_url: upstream.baseUrl, api_key: "k", models })],
      },
      {
        accessLog: new AccessLog(
          asJsonLines((line) => void lines.push(line)),
          systemClock,
        ),
      },
    );
  });
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
  });
  beforeEach(() => void lines.splice(0));

  const ask = async (fields: object = {}): Promise<Response> => {
    const response = await gateway.post("/chat/completions", {
      model: "acme/small",
      messages: [{ role: "user", content: "a secret question" }],
      ...fields,
    });
    await response.text();
    return response;
  };
  const written = (): Record<string, unknown>[] =>
    lines.map((line) => JSON.parse(line) as Record<string, unknown>);

  test.each([[false], [true]])("has a line for a request, streamed: %p", async (stream) => {
    upstream.enqueue(healthyChat);
    await ask({ stream });
    expect(written()).toEqual([
      expect.objectContaining({
        surface: "chat",
        status: 200,
        outcome: "completed",
        model: "acme/small",
        served_model: "acme/small",
        provider: "acme",
        streamed: stream,
        input_tokens: 11,
        output_tokens: 7,
        cost_usd: "0.000018",
        key_id: expect.stringMatching(/^key_/),
        workspace_id: expect.stringMatching(/^ws_/),
        trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        time: expect.stringMatching(/^20\d\d-/),
      }),
    ]);
    expect(lines.join("")).not.toContain("secret");
    expect(lines.join("")).not.toContain("lo w");
  });

  test("has one line for a request that fails, with its model and error", async () => {
    upstream.enqueue(json(chatError("no"), { status: 400 }));
    const { status } = await ask();
    expect(written()).toEqual([
      expect.objectContaining({
        path: "/chat/completions",
        status,
        model: "acme/small",
        provider: "acme",
        error: expect.any(String),
      }),
    ]);
  });

  test("has lines for refused requests and for those of the account plane", async () => {
    await gateway.get("/key", { authorization: "Bearer sk-svc-v1-none" });
    await gateway.get("/key");
    expect(written()).toEqual([
      expect.objectContaining({ method: "GET", path: "/key", status: 401 }),
      expect.objectContaining({ path: "/key", status: 200, key_id: expect.any(String) }),
    ]);
    expect(written()[0]).not.toHaveProperty("key_id");
  });
});
