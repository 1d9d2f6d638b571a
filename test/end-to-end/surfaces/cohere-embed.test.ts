import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { testLlmKey } from "../../support/gateway.ts";
import {
  cohereVectors,
  openaiVectors,
  startSurfaceScene,
  vectorOf,
} from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
beforeEach(() => {
  scene.acme.script(openaiVectors);
  scene.backup.script(cohereVectors);
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

async function embed(
  changes: Record<string, unknown> = {},
  headers: Record<string, string> = { "gw-skip-cache": "true" },
) {
  const body = {
    model: "acme/embed",
    texts: ["three", "four"],
    input_type: "search_query",
    ...changes,
  };
  const response = await fetch(`${scene.gateway.origin}/v2/embed`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      authorization: `Bearer ${testLlmKey}`,
      "content-type": "application/json",
      "x-service-provider": "acme",
      ...headers,
    },
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}
const toBackup = { "gw-skip-cache": "true", "x-service-provider": "backup" };

test("a provider of another dialect answers in Cohere's format, charged as embeddings", async () => {
  const reply = await embed({ embedding_types: ["float"], output_dimension: 2 });
  expect(reply.body).toEqual({
    id: `embd-${reply.headers.get("x-service-trace-id")}`,
    response_type: "embeddings_by_type",
    embeddings: { float: [vectorOf("three"), vectorOf("four")] },
    texts: ["three", "four"],
    meta: { api_version: { version: "2" }, billed_units: { input_tokens: 2 } },
    usage: { prompt_tokens: 2, total_tokens: 2, cost: 0.000002 },
  });
  expect(scene.acme.requests.at(-1)?.json()).toEqual({
    model: "embed",
    input: ["three", "four"],
    encoding_format: "float",
    dimensions: 2,
  });
  expect(await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"))).toMatchObject({
    promptTokens: 2,
    costNano: 2_000n,
  });
});

test("names fields that the provider does not support, and sends Cohere all of them", async () => {
  expect((await embed({ truncate: "END" })).headers.get("x-service-translation-loss")).toBe(
    "input_type, truncate",
  );
  const reply = await embed({ truncate: "END", max_tokens: 9, x_new: 1 }, toBackup);
  expect([reply.status, reply.headers.get("x-service-translation-loss")]).toEqual([200, null]);
  const wishes = { input_type: "search_query", truncate: "END", max_tokens: 9, x_new: 1 };
  expect(scene.backup.requests.at(-1)?.json()).toEqual({
    model: "embed",
    texts: ["three", "four"],
    embedding_types: ["float"],
    ...wishes,
  });
});

test("images are sent as content, alone and with texts", async () => {
  const url = "data:image/png;base64,AAAA";
  const content = [
    { type: "text", text: "a cat" },
    { type: "image_url", image_url: { url } },
  ];
  scene.backup.script(() => cohereVectors({ json: () => ({ texts: ["x"] }) } as never));
  expect((await embed({ texts: undefined, images: [url] }, toBackup)).body["texts"]).toEqual([]);
  expect(scene.backup.requests.at(-1)?.json()).toMatchObject({
    inputs: [{ content: [content[1]] }],
  });
  await embed({ texts: undefined, inputs: [{ content }] }, toBackup);
  expect(scene.backup.requests.at(-1)?.json()).toMatchObject({ inputs: [{ content }] });
});

test("cached Cohere responses are separate from those of OpenAI's clients", async () => {
  const kept = async (headers = {}) =>
    (await embed({ texts: ["kept"] }, headers)).headers.get("x-service-cache-status");
  expect([await kept(), await kept()]).toEqual(["MISS", "HIT"]);
  expect(
    (await embed({ texts: ["kept"], input_type: "search_document" }, {})).headers.get(
      "x-service-cache-status",
    ),
  ).toBe("MISS");
  const other = await scene.gateway.post("/embeddings", { model: "acme/embed", input: ["kept"] });
  expect([other.headers.get("x-service-cache-status"), at(await other.json(), "object")]).toEqual([
    "MISS",
    "list",
  ]);
});

describe("an invalid Cohere embed request", () => {
  test.each<[string, Record<string, unknown>, string, string]>([
    ["no model", { model: undefined }, "missing_required_fields", "model"],
    ["nothing to embed", { texts: undefined }, "missing_required_fields", "texts"],
    ["an empty list", { texts: [] }, "invalid_request_error", "texts"],
    ["an empty text", { texts: ["a", ""] }, "invalid_request_error", "texts[1]"],
    ["texts and images together", { images: ["data:,"] }, "invalid_request_error", "images"],
    [
      "an input without content",
      { texts: undefined, inputs: [{ text: "a" }] },
      "invalid_request_error",
      "inputs[0]",
    ],
    [
      "an unsupported embedding type",
      { embedding_types: ["int8"] },
      "invalid_request_error",
      "embedding_types",
    ],
    ["dimensions of 0", { output_dimension: 0 }, "invalid_request_error", "output_dimension"],
  ])("%s", async (_, changes, code, param) => {
    const { status, body } = await embed(changes);
    expect([status, at(body, "error.code"), at(body, "error.param")]).toEqual([400, code, param]);
    expect(body["message"]).toBe(at(body, "error.message"));
  });
});
