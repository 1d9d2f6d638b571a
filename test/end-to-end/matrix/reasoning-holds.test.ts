import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import { chat, gemini, message, response, said } from "./pairs/upstream-heads.ts";
import type { AnyClientName } from "./support/client-dialect.ts";
import { fieldsOf, numberOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, allPairs } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** How each client asks for much thought. */
const wishes: Readonly<Record<AnyClientName, Fields>> = {
  "openai-chat": { reasoning_effort: "high" },
  "anthropic-messages": { thinking: { type: "enabled", budget_tokens: 1_024 }, max_tokens: 1_500 },
  "openai-responses": { reasoning: { effort: "high" } },
  "google-generate": { generationConfig: { thinkingConfig: { thinkingLevel: "high" } } },
};

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
    { message: { role: "assistant", content: "So." }, finish_reason: "stop" },
    { prompt_tokens: 11, completion_tokens: used },
  ),
  "anthropic-messages": message(
    [{ type: "text", text: "So." }],
    { stop_reason: "end_turn" },
    { input_tokens: 11, output_tokens: used },
  ),
  "openai-responses": response(
    [said("So.")],
    {},
    { input_tokens: 11, output_tokens: used, total_tokens: 11 + used },
  ),
  "google-generate": gemini([{ text: "So." }], "STOP", {
    promptTokenCount: 11,
    candidatesTokenCount: used,
    totalTokenCount: 11 + used,
  }),
});

describe("R2, the hold covers the reasoning that the gateway allows the upstream", () => {
  test.each(allPairs.map((pair) => [nameOf(pair), pair] as const))(
    "%s",
    async (_, { client, upstream }) => {
      scene.upstreams[upstream].script((request) =>
        json(answersOf(capIn(fieldsOf(request.json())))[upstream]),
      );
      const reply = await scene.ask(
        client,
        { ...client.ask("Why?"), ...wishes[client.name] },
        { providers: [providerId(upstream)] },
      );
      const row = (await settledRows(scene.gateway)).find(
        ({ id }) => id === `gen_${reply.headers.get("x-service-trace-id")}`,
      );
      expect([reply.status, row?.costNano === undefined]).toEqual([200, false]);
      expect(Number(row?.detail.holdNanoUsd)).toBeGreaterThanOrEqual(Number(row?.costNano));
    },
  );
});
