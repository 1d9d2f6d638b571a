import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import { chat, gemini, message, response, said } from "./pairs/upstream-heads.ts";
import { fieldsOf, numberOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allPairs, clientOf, nameOf } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix({ modelFields: { max_completion_tokens: 100_000 } });
});
afterAll(() => scene.end());

/** The cap that an upstream was given. */
const capIn = (request: Fields): number =>
  numberOf(
    request.max_tokens ??
      request.max_completion_tokens ??
      request.max_output_tokens ??
      fieldsOf(request.generationConfig).maxOutputTokens,
  );

/** An answer that used so many tokens of output. */
const answersOf = (used: number): Readonly<Record<DialectId, Fields>> => ({
  "openai-chat": chat(
    { message: { role: "assistant", content: "So." }, finish_reason: "length" },
    { prompt_tokens: 11, completion_tokens: used },
  ),
  "anthropic-messages": message(
    [{ type: "text", text: "So." }],
    { stop_reason: "max_tokens" },
    { input_tokens: 11, output_tokens: used },
  ),
  "openai-responses": response(
    [said("So.")],
    { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    { input_tokens: 11, output_tokens: used, total_tokens: 11 + used },
  ),
  "google-generate": gemini([{ text: "So." }], "MAX_TOKENS", {
    promptTokenCount: 11,
    candidatesTokenCount: used,
    totalTokenCount: 11 + used,
  }),
});

describe("the output limit that a key affords is sent upstream, and the response ends with length", () => {
  test.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
    "%s",
    async (_, { client, upstream }) => {
      const secret = await createKey(scene.gateway, { limit: 0.005 });
      scene.upstreams[upstream].script((request) =>
        json(answersOf(capIn(fieldsOf(request.json())))[upstream]),
      );
      const reply = await scene.ask(
        client,
        { ...client.ask("Why?"), ...client.capped(90_000) },
        {
          providers: [providerId(upstream)],
          headers: { authorization: `Bearer ${secret}` },
        },
      );
      const cap = Number(reply.headers.get("x-service-output-cap"));
      const sent = fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json());
      const row = (await settledRows(scene.gateway)).find(
        ({ id }) => id === `gen_${reply.headers.get("x-service-trace-id")}`,
      );
      expect([reply.status, capIn(sent), row?.detail.outputCap]).toEqual([200, cap, cap]);
      expect(cap).toBeGreaterThan(2_500);
      expect(Number(row?.costNano)).toBeLessThanOrEqual(5_000_000);
      expect(row?.detail.uncollectedNanoUsd).toBeUndefined();
    },
  );

  test.each([
    ["anthropic-messages", 0.01, 200],
    ["anthropic-messages", 0.001, 402],
  ] as const)(
    "a reasoning budget is lowered with it at %s, or with a limit of %p the answer is %p",
    async (upstream, limit, status) => {
      const client = clientOf("anthropic-messages");
      const secret = await createKey(scene.gateway, { limit });
      const before = scene.upstreams[upstream].requests.length;
      const reply = await scene.ask(
        client,
        {
          ...client.ask("Why?"),
          max_tokens: 90_000,
          thinking: { type: "enabled", budget_tokens: 80_000 },
        },
        { providers: [providerId(upstream)], headers: { authorization: `Bearer ${secret}` } },
      );
      expect(reply.status).toBe(status);
      const sent = scene.upstreams[upstream].requests
        .slice(before)
        .map((request) => fieldsOf(request.json()));
      const budgets = sent.map(
        ({ max_tokens: cap, thinking }) =>
          [numberOf(fieldsOf(thinking).budget_tokens), numberOf(cap)] as const,
      );
      for (const [budget, cap] of budgets)
        expect([budget >= 1_024, budget < cap]).toEqual([true, true]);
      expect(budgets).toHaveLength(status === 200 ? 1 : 0);
    },
  );
});
