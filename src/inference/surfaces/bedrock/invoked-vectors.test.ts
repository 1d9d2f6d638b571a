import { describe, expect, test } from "bun:test";
import { invokedVectors } from "./invoked-vectors.ts";

const model = "acme/embed";
const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const nova = (params: object) => ({ taskType: "SINGLE_EMBEDDING", singleEmbeddingParams: params });
const text = { truncationMode: "END", value: "a fox" };

describe("vectors that are asked of InvokeModel", () => {
  test.each([
    ["Titan's text", { inputText: "a fox", dimensions: 256 }, ["a fox"], 256, {}],
    [
      "Titan's text and picture",
      {
        inputText: "a fox",
        inputImage: "AAAA",
        embeddingConfig: { outputEmbeddingLength: 384 },
      },
      [{ content: [{ type: "text", text: "a fox" }, picture] }],
      384,
      {},
    ],
    [
      "Nova's text",
      nova({ embeddingPurpose: "DOCUMENT_RETRIEVAL", embeddingDimension: 1024, text }),
      ["a fox"],
      1024,
      { input_type: "search_query", truncate: "END" },
    ],
    [
      "Nova's picture",
      nova({
        embeddingPurpose: "GENERIC_INDEX",
        image: { format: "png", source: { bytes: "AAAA" } },
      }),
      [{ content: [picture] }],
      undefined,
      { input_type: "search_document" },
    ],
    [
      "Cohere's texts",
      { texts: ["a fox", "a hen"], input_type: "clustering", output_dimension: 512 },
      ["a fox", "a hen"],
      512,
      { input_type: "clustering" },
    ],
  ])("%s are inputs of the model in the path", (_, body, inputs, dimensions, fields) => {
    expect(invokedVectors(body, model)?.request).toMatchObject({
      model,
      inputs,
      dimensions,
      cohere: { formats: ["float"], fields },
    });
  });

  test("Titan's vectors have the length one unless `normalize` is false", () => {
    const vectorOf = (body: object) =>
      invokedVectors({ inputText: "a fox", ...body }, model)?.render([[3, 4]], 2)["embedding"];
    expect([vectorOf({}), vectorOf({ normalize: false })]).toEqual([
      [0.6, 0.8],
      [3, 4],
    ]);
  });

  test.each([
    ["inputText", { inputText: "" }],
    ["embeddingTypes", { inputText: "a fox", embeddingTypes: ["float", "binary"] }],
    ["dimensions", { inputText: "a fox", dimensions: 0 }],
    [
      "embeddingConfig.outputEmbeddingLength",
      { inputText: "a fox", embeddingConfig: { outputEmbeddingLength: -5 } },
    ],
    ["singleEmbeddingParams.embeddingDimension", nova({ embeddingDimension: 1.5, text })],
    ["singleEmbeddingParams", nova({})],
    ["singleEmbeddingParams.text.value", nova({ text: {} })],
    ["embedding_types", { texts: ["a fox"], embedding_types: ["int8"] }],
    ["texts[0]", { texts: [""] }],
  ])("a wrong %s is refused by its name", (param, body) => {
    expect(() => invokedVectors(body, model)).toThrow(expect.objectContaining({ param }));
  });

  test.each([
    [{ inputText: "Say hello.", textGenerationConfig: {} }],
    [{ anthropic_version: "bedrock-2023-05-31", messages: [] }],
    [{ taskType: "TEXT_IMAGE" }],
    [{ prompt: "hello" }],
  ])("%j asks for none", (body) => {
    expect(invokedVectors(body, model)).toBeUndefined();
  });
});
