import { afterAll, beforeAll, expect, test } from "bun:test";
import { json, sse, stream } from "../../support/upstream/steps.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { clientOf, clients } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const answer = {
  candidates: [
    {
      content: { role: "model", parts: [] },
      finishReason: "MALFORMED_FUNCTION_CALL",
      finishMessage: "Malformed call: f(1",
    },
  ],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
};

for (const streamed of [false, true]) {
  test.each(clients.map((client) => [client.name, client] as const))(
    `%s gets an error for an unreadable tool call from Gemini, stream ${streamed}`,
    async (_, client) => {
      scene.upstreams["google-generate"].script(streamed ? stream([sse(answer)]) : json(answer));
      const { status, errors, headers } = await scene.ask(
        client,
        { ...client.ask("Why?"), stream: streamed },
        {
          providers: [providerId("google-generate")],
        },
      );
      const message =
        "The model wrote a tool call that cannot be read (MALFORMED_FUNCTION_CALL): Malformed call: f(1";
      expect([status, errors.map(({ code }) => code)]).toEqual([502, ["upstream_error"]]);
      expect(errors[0]?.message).toContain(message);
      expect(errors[0]?.metadata).toMatchObject({
        upstream_message: message,
        upstream_error: { code: "MALFORMED_FUNCTION_CALL" },
      });
      // Google charges for what the model generated, and says how much that was: 11 tokens at 0.5
      // and 7 at 1.5.
      expect(errors[0]?.message).toEndWith("What it generated was charged: $0.000016.");
      expect(errors[0]?.metadata).toMatchObject({
        charged_usd: 0.000016,
        usage: { prompt_tokens: 11, completion_tokens: 7 },
      });
      const row = await settledRow(scene.gateway, headers.get("x-service-trace-id"));
      expect(row).toMatchObject({
        status: "cut",
        finishReason: "error",
        promptTokens: 11,
        completionTokens: 7,
        costNano: 16_000n,
      });
    },
  );
}

for (const streamed of [false, true]) {
  test(`Google's own client gets the answer with Google's reason, stream ${streamed}`, async () => {
    const client = clientOf("google-generate");
    scene.upstreams["google-generate"].script(streamed ? stream([sse(answer)]) : json(answer));
    const { status, errors, finish, costUsd } = await scene.ask(
      client,
      { ...client.ask("Why?"), stream: streamed },
      { providers: [providerId("google-generate")] },
    );
    expect([status, errors, finish, costUsd]).toEqual([
      200,
      [],
      "MALFORMED_FUNCTION_CALL",
      0.000016,
    ]);
  });

  test(`a failed tool call is not charged when another provider answers, stream ${streamed}`, async () => {
    const [client] = clients;
    if (client === undefined) throw new Error("there are no clients");
    scene.upstreams["google-generate"].script(streamed ? stream([sse(answer)]) : json(answer));
    const healthy = wireOf("openai-chat");
    scene.upstreams["openai-chat"].script(
      streamed ? stream(wireEvents(healthy)) : json(healthy.whole),
    );
    const { status, headers } = await scene.ask(
      client,
      { ...client.ask("Why?"), stream: streamed },
      {
        providers: [providerId("google-generate"), providerId("openai-chat")],
      },
    );
    const row = await settledRow(scene.gateway, headers.get("x-service-trace-id"));
    const cost =
      BigInt(row?.promptTokens ?? 0) * 500n + BigInt(row?.completionTokens ?? 0) * 1_500n;
    expect([status, row?.provider, row?.costNano]).toEqual([200, providerId("openai-chat"), cost]);
  });
}

test("a failure without reported usage costs nothing", async () => {
  const [client] = clients;
  if (client === undefined) throw new Error("there are no clients");
  const { usageMetadata: _, ...uncounted } = answer;
  scene.upstreams["google-generate"].script(json(uncounted));
  const { status, errors, headers } = await scene.ask(client, client.ask("Why?"), {
    providers: [providerId("google-generate")],
  });
  expect([status, errors[0]?.metadata["charged_usd"]]).toEqual([502, undefined]);
  expect(await settledRow(scene.gateway, headers.get("x-service-trace-id"))).toBeUndefined();
});
