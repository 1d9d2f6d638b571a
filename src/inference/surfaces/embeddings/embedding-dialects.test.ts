import { describe, expect, test } from "bun:test";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import { cohereEmbed } from "./cohere-embed.ts";
import type { EmbeddingBatch, EmbeddingDialect } from "./embedding-dialect.ts";
import { googleEmbed } from "./google-embed.ts";
import { jinaEmbeddings } from "./jina-embeddings.ts";
import { openaiEmbeddings } from "./openai-embeddings.ts";
import { voyageEmbeddings } from "./voyage-embeddings.ts";

const dialects: Record<string, EmbeddingDialect> = {
  "openai-embeddings": openaiEmbeddings,
  "cohere-embed": cohereEmbed,
  "voyage-embeddings": voyageEmbeddings,
  "jina-embeddings": jinaEmbeddings,
  "google-embed": googleEmbed,
};

const batch = (changes: Partial<EmbeddingBatch> = {}): EmbeddingBatch => ({
  upstreamModel: "m",
  inputs: ["one", "two"],
  format: "float",
  formatNamed: false,
  dimensions: undefined,
  user: undefined,
  rest: {},
  cohere: {},
  ...changes,
});

const picture = {
  content: [
    { type: "text", text: "a cat" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
  ],
};
const onePicture = {
  content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
};

type Row = Record<keyof typeof dialects, unknown>;

/** What is asked, and what every dialect makes of it; `refused` where it cannot be said. */
const requests: [asked: string, changes: Partial<EmbeddingBatch>, row: Row][] = [
  [
    "two texts",
    {},
    {
      "openai-embeddings": { model: "m", input: ["one", "two"] },
      "cohere-embed": {
        model: "m",
        texts: ["one", "two"],
        input_type: "search_document",
        embedding_types: ["float"],
      },
      "voyage-embeddings": { model: "m", input: ["one", "two"] },
      "jina-embeddings": { model: "m", input: ["one", "two"], embedding_type: "float" },
      "google-embed": {
        requests: [
          { model: "models/m", content: { parts: [{ text: "one" }] } },
          { model: "models/m", content: { parts: [{ text: "two" }] } },
        ],
      },
    },
  ],
  [
    "one text as base64 with fewer dimensions and a user",
    {
      inputs: ["one"],
      format: "base64",
      formatNamed: true,
      dimensions: 8,
      user: "u",
    },
    {
      "openai-embeddings": {
        model: "m",
        input: "one",
        encoding_format: "base64",
        dimensions: 8,
        user: "u",
      },
      "cohere-embed": {
        model: "m",
        texts: ["one"],
        input_type: "search_document",
        embedding_types: ["base64"],
        output_dimension: 8,
      },
      "voyage-embeddings": {
        model: "m",
        input: ["one"],
        encoding_format: "base64",
        output_dimension: 8,
      },
      "jina-embeddings": { model: "m", input: ["one"], embedding_type: "base64", dimensions: 8 },
      "google-embed": {
        requests: [
          { model: "models/m", content: { parts: [{ text: "one" }] }, outputDimensionality: 8 },
        ],
      },
    },
  ],
  [
    "vendor fields and the input type",
    { inputs: ["one"], rest: { input_type: "query", truncation: false } },
    {
      "openai-embeddings": { input_type: "query", truncation: false, model: "m", input: "one" },
      "cohere-embed": {
        truncation: false,
        model: "m",
        texts: ["one"],
        input_type: "search_query",
        embedding_types: ["float"],
      },
      "voyage-embeddings": { input_type: "query", truncation: false, model: "m", input: ["one"] },
      "jina-embeddings": {
        input_type: "query",
        truncation: false,
        model: "m",
        input: ["one"],
        embedding_type: "float",
      },
      "google-embed": {
        requests: [
          {
            taskType: "RETRIEVAL_QUERY",
            truncation: false,
            model: "models/m",
            content: { parts: [{ text: "one" }] },
          },
        ],
      },
    },
  ],
  [
    "token ids",
    { inputs: [[1, 2], [3]] },
    {
      "openai-embeddings": { model: "m", input: [[1, 2], [3]] },
      "cohere-embed": "refused",
      "voyage-embeddings": "refused",
      "jina-embeddings": "refused",
      "google-embed": "refused",
    },
  ],
  [
    "a text and an image in one input",
    { inputs: [picture] },
    {
      "openai-embeddings": { model: "m", input: [picture] },
      "cohere-embed": {
        model: "m",
        inputs: [picture],
        input_type: "search_document",
        embedding_types: ["float"],
      },
      "voyage-embeddings": "refused",
      "jina-embeddings": "refused",
      "google-embed": {
        requests: [
          {
            model: "models/m",
            content: {
              parts: [{ text: "a cat" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }],
            },
          },
        ],
      },
    },
  ],
  [
    "an image beside a text",
    { inputs: ["one", onePicture] },
    {
      "openai-embeddings": { model: "m", input: ["one", onePicture] },
      "cohere-embed": {
        model: "m",
        inputs: [{ content: [{ type: "text", text: "one" }] }, onePicture],
        input_type: "search_document",
        embedding_types: ["float"],
      },
      "voyage-embeddings": "refused",
      "jina-embeddings": { model: "m", input: ["one", { image: "AAAA" }], embedding_type: "float" },
      "google-embed": {
        requests: [
          { model: "models/m", content: { parts: [{ text: "one" }] } },
          {
            model: "models/m",
            content: { parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] },
          },
        ],
      },
    },
  ],
];

describe("embedding requests", () => {
  for (const [asked, changes, row] of requests) {
    test.each(Object.keys(dialects))(`${asked}: %s`, (name) => {
      const encode = (): unknown => dialects[name]?.encode(batch(changes));
      if (row[name] !== "refused") return expect(encode()).toEqual(row[name] as object);
      expect(encode).toThrow(
        expect.objectContaining({
          code: "invalid_request_error",
          param: "input",
        } satisfies Partial<GatewayError>),
      );
    });
  }
});

const listed = (usage: object) => ({
  data: [
    { index: 1, embedding: [0, 1] },
    { index: 0, embedding: [1, 0] },
  ],
  usage,
});

/**
 * Answers with the vectors `[1, 0]` and `[0, 1]`, out of order where the dialect has an order of
 * its own.
 */
const answers: Record<string, { body: object; usage: object }> = {
  "openai-embeddings": {
    body: listed({ prompt_tokens: 5, total_tokens: 5 }),
    usage: { inputTokens: 5 },
  },
  "cohere-embed": {
    body: {
      id: "e1",
      embeddings: {
        float: [
          [1, 0],
          [0, 1],
        ],
      },
      meta: { billed_units: { input_tokens: 5, image_tokens: 2 } },
    },
    usage: { inputTokens: 5, inputImageTokens: 2 },
  },
  "voyage-embeddings": { body: listed({ total_tokens: 5 }), usage: { inputTokens: 5 } },
  "jina-embeddings": {
    body: listed({ prompt_tokens: 5, total_tokens: 5 }),
    usage: { inputTokens: 5 },
  },
  "google-embed": {
    body: {
      embeddings: [{ values: [1, 0] }, { values: [0, 1] }],
      usageMetadata: { promptTokenCount: 5 },
    },
    usage: { inputTokens: 5 },
  },
};

describe("embedding responses", () => {
  test.each(Object.entries(answers))(
    "%s: vectors are in the order of the inputs, with usage",
    (name, { body, usage }) => {
      expect(dialects[name]?.decode(body)).toMatchObject({
        vectors: [
          [1, 0],
          [0, 1],
        ],
        metered: { usage, estimated: false, clamped: false },
      });
    },
  );

  test.each(Object.keys(dialects))("%s: an invalid response is undefined", (name) => {
    for (const body of [
      {},
      { data: [{ index: 0, embedding: "%%" }] },
      { data: [{ index: 5, embedding: [1] }] },
      { data: [{ embedding: [] }] },
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [1] },
        ],
      },
      { embeddings: { float: [["a"]] } },
      { embeddings: [{}] },
    ]) {
      expect(dialects[name]?.decode(body)).toBeUndefined();
    }
  });

  test("impossible usage counts are clamped and flagged", () => {
    const part = openaiEmbeddings.decode(listed({ prompt_tokens: -3 }));
    expect(part?.metered).toEqual({ usage: { inputTokens: 0 }, estimated: false, clamped: true });
  });

  test("usage by modality is read if the provider reports it", () => {
    const kinds = { text_tokens: 4, image_tokens: 5, audio_tokens: 0 };
    const openai = openaiEmbeddings.decode(
      listed({ prompt_tokens: 9, prompt_tokens_details: kinds }),
    );
    expect(openai?.modalities).toEqual({ text_tokens: 4, image_tokens: 5 });
    const details = [
      { modality: "TEXT", tokenCount: 4 },
      { modality: "DOCUMENT", tokenCount: 5 },
    ];
    const google = googleEmbed.decode({
      embeddings: [{ values: [1] }],
      usageMetadata: { promptTokenCount: 9, promptTokenDetails: details },
    });
    expect(google?.modalities).toEqual({ text_tokens: 4, file_tokens: 5 });
  });
});
