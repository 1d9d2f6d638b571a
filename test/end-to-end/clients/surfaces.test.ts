import { createCohere } from "@ai-sdk/cohere";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { APICallError, embed, embedMany, rerank } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CohereClientV2, CohereError } from "cohere-ai";
import { APIError } from "openai";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { failureOf, openaiClient } from "./openai-client.ts";

const embeddingModel = "sandbox/embed:free";
const rerankModel = "sandbox/rerank:free";

let gateway: TestGateway;
beforeAll(async () => void (gateway = await startGateway({ sandbox: true })));
afterAll(() => gateway.stop());

const rounded = (vector: readonly number[] | undefined): number[] =>
  (vector ?? []).map((value) => Math.round(value * 1e4) / 1e4);
/** `one two` and `three` in four dimensions, as the sandbox has them. */
let expected: number[][];
beforeAll(async () => {
  const response = await gateway.post("/embeddings", {
    model: embeddingModel,
    input: ["one two", "three"],
    dimensions: 4,
  });
  expected = ((await response.json()) as { data: { embedding: number[] }[] }).data.map(
    ({ embedding }) => rounded(embedding),
  );
});

describe("openai", () => {
  test("embeddings.create decodes the base64 that it requests by default", async () => {
    const { data, usage } = await openaiClient(gateway).embeddings.create({
      model: embeddingModel,
      input: ["one two", "three"],
      dimensions: 4,
    });
    expect(data.map(({ embedding }) => rounded(embedding))).toEqual(expected);
    expect(usage).toMatchObject({ prompt_tokens: 4, total_tokens: 4 });
  });

  test.each(["float", "base64"] as const)("embeddings.create in %s", async (format) => {
    const { data } = await openaiClient(gateway).embeddings.create({
      model: embeddingModel,
      input: "one two",
      dimensions: 4,
      encoding_format: format,
    });
    const embedding: unknown = data[0]?.embedding;
    const floats = (text: string) => [
      ...new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer),
    ];
    expect(
      rounded(typeof embedding === "string" ? floats(embedding) : (embedding as number[])),
    ).toEqual(expected[0] as number[]);
  });

  test("moderations.create, with OpenAI's model and without a model", async () => {
    for (const model of ["omni-moderation-latest", undefined]) {
      const { results, id } = await openaiClient(gateway).moderations.create({
        input: ["I will kill you", "hello"],
        ...(model && { model }),
      });
      expect(id).toStartWith("modr-");
      expect(results.map(({ flagged, categories }) => [flagged, categories.violence])).toEqual([
        [true, true],
        [false, false],
      ]);
    }
  });

  test("errors have its own error class", async () => {
    const error = await failureOf(() =>
      openaiClient(gateway).embeddings.create({ model: "sandbox/none", input: "x" }),
    );
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 404, code: "model_unavailable" });
  });
});

describe("AI SDK", () => {
  const models = () => ({
    openai: createOpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey }).embedding(
      embeddingModel,
    ),
    "openai-compatible": createOpenAICompatible({
      name: "gw",
      baseURL: gateway.baseUrl,
      apiKey: testLlmKey,
    }).embeddingModel(embeddingModel),
  });

  test.each(["openai", "openai-compatible"] as const)("%s: embed and embedMany", async (name) => {
    const providerOptions = {
      openai: { dimensions: 4 },
      gw: { dimensions: 4 },
      openaiCompatible: { dimensions: 4 },
    };
    const model = models()[name];
    const one = await embed({ model, value: "one two", providerOptions, maxRetries: 0 });
    const many = await embedMany({
      model,
      values: ["one two", "three"],
      providerOptions,
      maxRetries: 0,
    });
    expect(rounded(one.embedding)).toEqual(expected[0] as number[]);
    expect(many.embeddings.map(rounded)).toEqual(expected);
    expect(many.usage.tokens).toBe(4);
  });

  test("Cohere's provider at /v2: embed and embedMany", async () => {
    const model = createCohere({ baseURL: `${gateway.origin}/v2`, apiKey: testLlmKey }).embedding(
      embeddingModel,
    );
    const providerOptions = {
      cohere: { outputDimension: 256 as const, inputType: "search_document" as const },
    };
    const { embedding } = await embed({ model, value: "one two", providerOptions, maxRetries: 0 });
    const { embeddings, usage } = await embedMany({
      model,
      values: ["one two", "three"],
      providerOptions,
      maxRetries: 0,
    });
    const asked = { model: embeddingModel, input: ["one two", "three"], dimensions: 256 };
    const { data } = (await (await gateway.post("/embeddings", asked)).json()) as {
      data: { embedding: number[] }[];
    };
    expect([embeddings, usage.tokens]).toEqual([data.map((entry) => entry.embedding), 4]);
    expect(embedding).toEqual(embeddings[0] as number[]);
    const unknown = createCohere({ baseURL: `${gateway.origin}/v2`, apiKey: testLlmKey }).embedding(
      "sandbox/none",
    );
    const error = await failureOf(() => embed({ model: unknown, value: "x", maxRetries: 0 }));
    expect(error).toMatchObject({
      statusCode: 404,
      message: expect.stringContaining("sandbox/none"),
      isRetryable: false,
    });
  });

  /**
   * Cohere's provider under each base: it puts `/rerank` behind the base that it is given, as the
   * contract has it.
   */
  const reranking = (base: string) =>
    createCohere({ baseURL: gateway.origin + base, apiKey: testLlmKey }).reranking(rerankModel);

  test.each(["/api/v1", "/v1", "/v2"])(
    "rerank with Cohere's provider at %s: texts and objects, best first",
    async (base) => {
      const { ranking, originalDocuments, response } = await rerank({
        model: reranking(base),
        query: "cat food",
        documents: ["dog", "food for a cat", "cat"],
        topN: 2,
        maxRetries: 0,
      });
      expect(ranking.map(({ originalIndex, document }) => [originalIndex, document])).toEqual([
        [1, "food for a cat"],
        [2, "cat"],
      ]);
      expect(ranking.every(({ score }) => score > 0 && score <= 1)).toBe(true);
      expect([originalDocuments.length, response.id?.startsWith("rerank-")]).toEqual([3, true]);
      const objects = [{ name: "dog" }, { name: "cat food" }];
      const { rerankedDocuments } = await rerank({
        model: reranking(base),
        query: "cat food",
        documents: objects,
        maxRetries: 0,
      });
      expect(rerankedDocuments[0]).toEqual({ name: "cat food" });
    },
  );

  test("errors of a rerank have its own error class", async () => {
    const model = createCohere({ baseURL: gateway.baseUrl, apiKey: "sk-svc-v1-nobody" }).reranking(
      rerankModel,
    );
    const error = await failureOf(() =>
      rerank({ model, query: "q", documents: ["d"], maxRetries: 0 }),
    );
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 401, isRetryable: false });
  });
});

test("LangChain: embedQuery and embedDocuments", async () => {
  const model = new OpenAIEmbeddings({
    model: embeddingModel,
    dimensions: 4,
    apiKey: testLlmKey,
    configuration: { baseURL: gateway.baseUrl },
    maxRetries: 0,
  });
  expect(rounded(await model.embedQuery("one two"))).toEqual(expected[0] as number[]);
  expect((await model.embedDocuments(["one two", "three"])).map(rounded)).toEqual(expected);
});

describe("cohere-ai", () => {
  const client = (token = testLlmKey) => new CohereClientV2({ environment: gateway.origin, token });

  test("embed, in both formats", async () => {
    const { id, embeddings, texts, meta } = await client().embed(
      {
        model: embeddingModel,
        inputType: "search_document",
        texts: ["one two", "three"],
        embeddingTypes: ["float", "base64"],
        outputDimension: 4,
      },
      { maxRetries: 0 },
    );
    const floats = (text: string) => [
      ...new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer),
    ];
    const fromBase64 = (embeddings.base64 ?? []).map(floats);
    expect([embeddings.float?.map(rounded), fromBase64.map(rounded)]).toEqual([expected, expected]);
    expect([id.startsWith("embd-"), texts, meta?.billedUnits?.inputTokens]).toEqual([
      true,
      ["one two", "three"],
      4,
    ]);
  });

  test("rerank", async () => {
    const { results } = await client().rerank(
      {
        model: rerankModel,
        query: "cat food",
        documents: ["dog", "food for a cat", "cat"],
        topN: 2,
      },
      { maxRetries: 0 },
    );
    expect(results.map(({ index }) => index)).toEqual([1, 2]);
    expect(results.every(({ relevanceScore }) => relevanceScore > 0 && relevanceScore <= 1)).toBe(
      true,
    );
  });

  test("errors have its own error class with the gateway's message", async () => {
    const wrong = await failureOf(() =>
      client().rerank({ model: embeddingModel, query: "q", documents: ["d"] }, { maxRetries: 0 }),
    );
    expect(wrong).toBeInstanceOf(CohereError);
    expect(wrong).toMatchObject({
      statusCode: 400,
      body: { error: { code: "model_not_rerank_compatible" } },
    });
    const stranger = await failureOf(() =>
      client("sk-svc-v1-nobody").rerank(
        { model: rerankModel, query: "q", documents: ["d"] },
        { maxRetries: 0 },
      ),
    );
    expect(stranger).toMatchObject({ statusCode: 401 });
    const strange = await failureOf(() =>
      client().embed(
        {
          model: embeddingModel,
          inputType: "search_query",
          texts: ["x"],
          embeddingTypes: ["int8"],
        },
        { maxRetries: 0 },
      ),
    );
    expect(strange).toMatchObject({
      statusCode: 400,
      body: { error: { code: "invalid_request_error", param: "embedding_types" } },
    });
  });
});
