import { describe, expect, test } from "bun:test";
import { catalogFactsSchema, factsText } from "../catalog-facts.ts";
import type { SourceModel } from "./facts-source.ts";
import { transformFacts } from "./transform-facts.ts";

const text = { input: ["text"], output: ["text"] };
const images = { input: ["text"], output: ["text", "image"] };
const speech = { input: ["audio"], output: ["text"] };

const model = (id: string, more: Partial<SourceModel> = {}): SourceModel => ({
  id,
  name: id,
  limit: { context: 1000, output: 100 },
  modalities: text,
  cost: { input: 1, output: 2 },
  ...more,
});

const transform = (providers: Record<string, SourceModel[]>) =>
  transformFacts({
    source: "test",
    snapshot: "2026-07-02",
    providers: Object.entries(providers).map(([id, models]) => ({ id, name: id, models })),
  });

/** `provider upstream` of every row with an id. */
const routes = (providers: Record<string, SourceModel[]>, id: string): string[] =>
  transform(providers)
    .rows.filter((row) => row.id === id)
    .map((row) => `${row.provider} ${row.upstream}`);

test("prices a search at models that take one", () => {
  const names = ["o1", "o3", "o3-mini"];
  const { rows } = transform({ openai: names.map((name) => model(name)) });
  const priced = rows
    .filter(({ upstream }) => names.includes(upstream))
    .map(({ upstream, tools }) => [upstream, tools?.["web_search"]]);
  expect(priced).toEqual([
    ["o1", undefined],
    ["o3", "0.01"],
    ["o3-mini", undefined],
  ]);
});

test("converts a source row to a facts row", () => {
  const { rows } = transform({
    openai: [
      model("gpt-9", {
        name: "GPT-9 (latest)",
        release_date: "2026-04-23",
        tool_call: true,
        structured_output: true,
        temperature: false,
        reasoning: true,
        reasoning_options: [
          { type: "toggle" },
          { type: "effort", values: ["high", "none", "low", "odd"] },
        ],
        modalities: { input: ["text", "image", "audio", "pdf"], output: ["text"] },
      }),
    ],
  });
  expect(rows.find(({ id }) => id === "openai/gpt-9")).toEqual({
    tools: expect.objectContaining({ web_search: "0.01", file_search: "0.0025" }),
    id: "openai/gpt-9",
    provider: "openai",
    upstream: "gpt-9",
    name: "GPT-9",
    surface: "chat",
    context: 1000,
    max_output: 100,
    prices: { input: "1", output: "2" },
    capabilities: [
      "chat",
      "function-calling",
      "vision",
      "audio-input",
      "document-input",
      "structured-output",
      "reasoning",
    ],
    parameters: [
      "max_tokens",
      "stop",
      "stream",
      "tools",
      "tool_choice",
      "response_format",
      "structured_outputs",
      "reasoning_effort",
    ],
    efforts: ["none", "low", "high", "odd"],
    released: "2026-04-23",
  });
});

test("omits capabilities that the source does not state", () => {
  const row = transform({ openai: [model("gpt-9")] }).rows.find(({ id }) => id === "openai/gpt-9");
  expect(row?.capabilities).toEqual(["chat"]);
  expect(row?.parameters).toEqual(["max_tokens", "stop", "stream"]);
  expect(row?.efforts).toBeUndefined();
});

describe("keeps or omits rows:", () => {
  test.each<[string, Record<string, SourceModel[]>, string, string[]]>([
    [
      "embedding models",
      { openai: [model("text-embedding-9")] },
      "openai/text-embedding-9",
      ["openai text-embedding-9"],
    ],
    [
      "models with image output",
      { openai: [model("gpt-image-9", { modalities: images })] },
      "openai/gpt-image-9",
      [],
    ],
    [
      "image output contradicted by another row",
      { openai: [model("gpt-9")], azure: [model("gpt-9", { modalities: images })] },
      "openai/gpt-9",
      ["azure gpt-9", "openai gpt-9"],
    ],
    [
      "speech models without a context length",
      { openai: [model("whisper-9", { limit: { context: 0 } })] },
      "openai/whisper-9",
      [],
    ],
    [
      "models without text input",
      { alibaba: [model("qwen9-asr", { modalities: speech })] },
      "qwen/qwen9-asr",
      [],
    ],
    ["unknown vendors", { unheard: [model("x/y")] }, "x/y", []],
    ["local servers", { lmstudio: [model("qwen/qwen3-8b")] }, "qwen/qwen3-8b", []],
    ["surfaces that the provider lacks", { groq: [model("baai/bge-m9")] }, "baai/bge-m9", []],
    [
      "deprecated rows if an active one exists",
      { together: [model("zai-org/GLM-9", { status: "deprecated" })], zai: [model("glm-9")] },
      "z-ai/glm-9",
      ["zai glm-9"],
    ],
    [
      "deprecated rows if no other exists",
      { zai: [model("glm-9", { status: "deprecated" })] },
      "z-ai/glm-9",
      ["zai glm-9"],
    ],
    [
      "the global profile of Bedrock's profiles",
      {
        "amazon-bedrock": ["us.", "", "eu.", "global."].map((region) =>
          model(`${region}anthropic.claude-opus-9`),
        ),
      },
      "anthropic/claude-opus-9",
      ["amazon-bedrock global.anthropic.claude-opus-9"],
    ],
  ])("%s", (_, providers, id, expected) => {
    expect(routes(providers, id)).toEqual(expected);
  });
});

describe("dated Anthropic models", () => {
  const vertex = { "google-vertex-anthropic": [model("claude-opus-9@20260101")] };

  test("get the undated name if another provider lists it", () => {
    const providers = {
      ...vertex,
      anthropic: [model("claude-opus-9"), model("claude-opus-9-20260101")],
    };
    expect(routes(providers, "anthropic/claude-opus-9")).toEqual([
      "anthropic claude-opus-9",
      "google-vertex-anthropic claude-opus-9@20260101",
    ]);
    expect(routes(providers, "anthropic/claude-opus-9-20260101")).toEqual([
      "anthropic claude-opus-9-20260101",
      "google-vertex-anthropic claude-opus-9@20260101",
    ]);
  });

  test("do not get an undated name otherwise", () => {
    expect(routes(vertex, "anthropic/claude-opus-9")).toEqual([]);
  });
});

test("other spellings of resellers become aliases of the catalog id", () => {
  const { aliases } = transform({
    openrouter: [model("anthropic/claude-opus-9.1"), model("acme/one")],
  });
  expect(aliases).toEqual({ "anthropic/claude-opus-9.1": "anthropic/claude-opus-9-1" });
});

test("vendors' retrieval models are included without a price", () => {
  const row = transform({}).rows.find(({ id }) => id === "voyage/voyage-3.5");
  expect(row).toMatchObject({ provider: "voyage", upstream: "voyage-3.5", surface: "embeddings" });
  expect(row?.prices).toBeUndefined();
});

test("equal facts give equal, sorted and parseable text", () => {
  const providers = { zai: [model("glm-9")], openai: [model("gpt-9"), model("gpt-8")] };
  const facts = transform(providers);
  const reversed = transform({ openai: [model("gpt-8"), model("gpt-9")], zai: [model("glm-9")] });
  expect(factsText(facts)).toBe(factsText(reversed));
  expect(catalogFactsSchema.parse(JSON.parse(factsText(facts)))).toEqual(facts);
  const ids = facts.rows.map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted());
});
