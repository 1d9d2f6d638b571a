import { describe, expect, test } from "bun:test";
import { fitBody } from "../dialects/openai-chat/fitting/fit-body.ts";
import { providerDefinitions } from "./index.ts";
import type { Environment, ProviderDefinition, SigningCredential } from "./provider-definition.ts";

const definitionOf = (id: string): ProviderDefinition => {
  const definition = providerDefinitions.find((candidate) => candidate.id === id);
  if (definition === undefined) throw new Error(`no provider ${id}`);
  return definition;
};

const baseUrlOf = (id: string, environment: Environment): string | undefined => {
  const { baseUrl } = definitionOf(id);
  return typeof baseUrl === "string" ? baseUrl : baseUrl(environment);
};

test("provider ids are unique, valid and in alphabetical order", () => {
  const ids = providerDefinitions.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(ids.toSorted());
  for (const id of ids) expect(id).toMatch(/^[a-z0-9][a-z0-9-]*$/);
});

test("every vendor of the facts source has a provider", () => {
  const factsIds = new Set(providerDefinitions.map(({ id, factsId }) => factsId ?? id));
  const expected = [
    "openai",
    "anthropic",
    "google",
    "google-vertex",
    "google-vertex-anthropic",
    "azure",
    "amazon-bedrock",
    "mistral",
    "deepseek",
    "xai",
    "groq",
    "togetherai",
    "fireworks-ai",
    "cerebras",
    "openrouter",
    "cohere",
    "perplexity",
    "deepinfra",
    "nvidia",
    "novita-ai",
    "moonshotai",
    "zai",
    "alibaba",
    "minimax",
    "huggingface",
    "baseten",
    "nebius",
    "siliconflow",
    "inference",
    "friendli",
    "chutes",
    "scaleway",
    "ovhcloud",
    "stepfun",
    "upstage",
    "venice",
    "wandb",
    "cloudflare-workers-ai",
    "ollama-cloud",
    "lmstudio",
    "github-models",
    "vercel",
    "databricks",
    "inception",
    "morph",
  ];
  expect(expected.filter((id) => !factsIds.has(id))).toEqual([]);
});

describe.each(providerDefinitions.map((definition) => [definition.id, definition] as const))(
  "%s",
  (_, definition) => {
    test("has a description of at most 200 characters", () => {
      expect(definition.description.length).toBeWithin(10, 201);
      expect(definition.website).toStartWith("https://");
    });

    test("offers a surface, and has a valid fixed base URL if any", () => {
      expect(Object.keys(definition.dialects).length).toBeGreaterThan(0);
      if (typeof definition.baseUrl === "string")
        expect(definition.baseUrl).toMatch(/^https:\/\/[^/]+.*[^/]$/);
    });

    test("names the variables of its credential", () => {
      expect(definition.credentialVariables.length).toBeGreaterThan(0);
    });
  },
);

describe("base URLs that depend on the account", () => {
  test.each<[string, Environment, string | undefined]>([
    ["azure", {}, undefined],
    ["azure", { AZURE_RESOURCE_NAME: "acme" }, "https://acme.openai.azure.com/openai/v1"],
    [
      "azure",
      { AZURE_OPENAI_ENDPOINT: "https://acme.openai.azure.com/" },
      "https://acme.openai.azure.com/openai/v1",
    ],
    [
      "azure",
      { AZURE_OPENAI_ENDPOINT: "https://acme.openai.azure.com/openai/v1" },
      "https://acme.openai.azure.com/openai/v1",
    ],
    ["amazon-bedrock", {}, "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"],
    [
      "amazon-bedrock",
      { AWS_REGION: "eu-west-1" },
      "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
    ],
    ["databricks", {}, undefined],
    [
      "databricks",
      { DATABRICKS_HOST: "https://a.cloud.databricks.com/" },
      "https://a.cloud.databricks.com/ai-gateway/mlflow/v1",
    ],
    ["cloudflare", {}, undefined],
    [
      "cloudflare",
      { CLOUDFLARE_ACCOUNT_ID: "c0" },
      "https://api.cloudflare.com/client/v4/accounts/c0/ai/v1",
    ],
    ["google-vertex", {}, undefined],
    [
      "google-vertex",
      { GOOGLE_VERTEX_PROJECT: "p" },
      "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google",
    ],
    [
      "google-vertex-anthropic",
      { GOOGLE_VERTEX_PROJECT: "p", GOOGLE_VERTEX_LOCATION: "us-east5" },
      "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models",
    ],
    ["ollama", {}, undefined],
    ["ollama", { OLLAMA_BASE_URL: "http://127.0.0.1:11434/v1/" }, "http://127.0.0.1:11434/v1"],
    ["vllm", { VLLM_BASE_URL: " " }, undefined],
    ["lm-studio", { LMSTUDIO_BASE_URL: "http://127.0.0.1:1234/v1" }, "http://127.0.0.1:1234/v1"],
  ])("%s with %p", (id, environment, expected) => {
    expect(baseUrlOf(id, environment)).toBe(expected);
  });
});

describe("base URLs that depend on the dialect", () => {
  test.each<[string, Environment, ReturnType<NonNullable<ProviderDefinition["dialectBaseUrls"]>>]>([
    ["azure", {}, {}],
    [
      "azure",
      { AZURE_RESOURCE_NAME: "acme" },
      { "anthropic-messages": "https://acme.services.ai.azure.com/anthropic/v1" },
    ],
    [
      "amazon-bedrock",
      { AWS_REGION: "eu-west-1" },
      {
        "anthropic-messages": "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "amazon-converse": "https://bedrock-runtime.eu-west-1.amazonaws.com",
      },
    ],
    ["google-vertex", {}, {}],
    [
      "google-vertex",
      { GOOGLE_CLOUD_PROJECT: "p", GOOGLE_CLOUD_LOCATION: "europe-west4" },
      {
        "openai-chat":
          "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/endpoints/openapi",
      },
    ],
  ])("%s with %p", (id, environment, expected) => {
    expect(definitionOf(id).dialectBaseUrls?.(environment)).toEqual(expected);
  });
});

describe("signing credentials", () => {
  const keys = { AWS_ACCESS_KEY_ID: "AK", AWS_SECRET_ACCESS_KEY: "s" };
  const aws = {
    type: "aws-sigv4",
    accessKeyId: "AK",
    secretAccessKey: "s",
    region: "us-east-1",
    service: "bedrock",
  } as const;
  test.each<[string, Environment, SigningCredential | undefined]>([
    ["amazon-bedrock", {}, undefined],
    ["amazon-bedrock", { AWS_ACCESS_KEY_ID: "AK" }, undefined],
    ["amazon-bedrock", keys, aws],
    [
      "amazon-bedrock",
      { ...keys, AWS_SESSION_TOKEN: "t", AWS_DEFAULT_REGION: "eu-north-1" },
      { ...aws, sessionToken: "t", region: "eu-north-1" },
    ],
    ["google-vertex", {}, undefined],
    [
      "google-vertex",
      { GOOGLE_APPLICATION_CREDENTIALS: "key.json" },
      { type: "google-service-account", key: { file: "key.json" } },
    ],
    [
      "google-vertex",
      { GOOGLE_APPLICATION_CREDENTIALS: '{"type":"service_account"}' },
      { type: "google-service-account", key: { json: '{"type":"service_account"}' } },
    ],
    [
      "google-vertex-anthropic",
      { GOOGLE_APPLICATION_CREDENTIALS: "key.json", GOOGLE_SERVICE_ACCOUNT_KEY: "{}" },
      { type: "google-service-account", key: { json: "{}" } },
    ],
  ])("%s with %p", (id, environment, expected) => {
    expect(definitionOf(id).signing?.(environment)).toEqual(expected as SigningCredential);
  });
});

describe("dialects of models that deviate from their provider's chat dialect", () => {
  const dialectOf = (id: string, model: string): string | undefined =>
    definitionOf(id).deviatingModels?.find(({ match }) => match.test(model))?.dialect;

  test.each([
    ["openai", "gpt-5.4-pro", "openai-responses"],
    ["openai", "gpt-5.1-codex-mini", "openai-responses"],
    ["openai", "o3-deep-research", "openai-responses"],
    ["openai", "gpt-5.4", undefined],
    ["azure", "claude-sonnet-4-5", "anthropic-messages"],
    ["azure", "deepseek-v4-pro", undefined],
    ["amazon-bedrock", "global.anthropic.claude-opus-4-8", "anthropic-messages"],
    ["amazon-bedrock", "openai.gpt-oss-120b-1:0", undefined],
    ["amazon-bedrock", "global.openai.gpt-6-astra", "openai-responses"],
    ["amazon-bedrock", "us.meta.llama4-scout-17b-instruct-v1:0", "amazon-converse"],
    ["amazon-bedrock", "us.amazon.nova-2-lite-v1:0", "amazon-converse"],
    ["amazon-bedrock", "amazon.nova-2-sonic-v1:0", "none"],
    ["google-vertex", "gemini-3.5-flash", undefined],
    ["google-vertex", "zai-org/glm-5-maas", "openai-chat"],
    ["openrouter", "~anthropic/claude-opus-latest", "none"],
  ])("%s %s", (id, model, expected) => {
    expect(dialectOf(id, model)).toBe(expected as string);
  });
});

test.each([
  ["deepseek-flash", ["image_url", "text"]],
  ["deepseek-v4-pro", ["text", "text"]],
])("of DeepSeek's models, %s is sent a picture and a file as %j", (upstreamModel, types) => {
  const file = { type: "file", file: { file_id: "f" } };
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const body = { messages: [{ role: "user", content: [picture, file] }] };
  const { deviations = {} } = definitionOf("deepseek");
  const { body: fitted } = fitBody(body, { deviations, reasons: false, upstreamModel });
  expect(fitted["messages"]).toMatchObject([{ content: types.map((type) => ({ type })) }]);
});
