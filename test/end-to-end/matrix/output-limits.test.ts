import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream as streamed } from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { addressOf } from "./support/client-dialect.ts";
import { fieldsOf, numberOf, type Fields } from "./support/json-value.ts";
import { model, providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allPairs, nameOf } from "./support/pairs.ts";

/** What every provider of the matrix allows. */
const allowedTokens = 8_192;

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const capIn = (request: Fields): number =>
  numberOf(
    request.max_tokens ??
      request.max_completion_tokens ??
      request.max_output_tokens ??
      fieldsOf(request.generationConfig).maxOutputTokens,
  );

const fieldOf: Readonly<Record<string, string>> = {
  "anthropic-messages": "max_tokens",
  "openai-responses": "max_output_tokens",
  "google-generate": "maxOutputTokens",
};
const lowering = allPairs.filter(({ client }) => client.name in fieldOf);

describe("an output limit above the provider's maximum is lowered to it, and reported", () => {
  for (const stream of [false, true]) {
    test.each(lowering.map((pair) => [nameOf(pair), pair] as const))(
      `%s, stream ${stream}`,
      async (_, { client, upstream }) => {
        const field = fieldOf[client.name] ?? "";
        const wire = wireOf(upstream);
        scene.upstreams[upstream].script(stream ? streamed(wireEvents(wire)) : json(wire.whole));
        const ask = async (tokens: number): ReturnType<MatrixScene["ask"]> =>
          scene.ask(
            client,
            { ...client.ask("Why?"), stream, ...client.capped(tokens) },
            { providers: [providerId(upstream)] },
          );
        const losses = (headers: Headers): string[] =>
          headers.get("x-service-translation-loss")?.split(", ") ?? [];

        const long = await ask(100_000);
        expect([
          long.status,
          capIn(fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json())),
        ]).toEqual([200, allowedTokens]);
        expect(losses(long.headers)).toContain(field);

        const fitting = await ask(allowedTokens);
        expect([
          fitting.status,
          capIn(fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json())),
        ]).toEqual([200, allowedTokens]);
        expect(losses(fitting.headers)).not.toContain(field);
      },
    );
  }

  test.each(lowering.map((pair) => [nameOf(pair), pair] as const))(
    "%s: returns 404 with require_parameters",
    async (_, { client, upstream }) => {
      const providers = [providerId(upstream)];
      const before = scene.upstreams[upstream].requests.length;
      const { path, body } = addressOf(client, {
        model,
        ...client.ask("Why?"),
        ...client.capped(100_000),
        provider: { only: providers, require_parameters: true },
      });
      const response = await scene.gateway.post(path, body);
      expect([
        response.status,
        (await response.text()).includes(fieldOf[client.name] ?? ""),
      ]).toEqual([404, true]);
      expect(scene.upstreams[upstream].requests.length).toBe(before);
    },
  );
});
