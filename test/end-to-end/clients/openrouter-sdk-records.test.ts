import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import { OpenRouterClient, type OpenRouter } from "./adapters/openrouter-sdk.ts";

/**
 * `@openrouter/sdk` checks every answer with schemas of its own and throws where a field is missing: what it returns, it has read.
 */
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let client: OpenRouter;
let manager: OpenRouter;

const pricing = { prompt: "0.50", completion: "1.50" };
const chatModel = {
  id: "acme/large",
  context_length: 128_000,
  max_completion_tokens: 4_096,
  pricing,
};
const reasoning = { levels: ["low", "high"], default: "low" };
const models = [
  { ...chatModel, capabilities: ["chat", "vision"], reasoning, supported_parameters: ["tools"] },
  { id: "acme/small:free", context_length: 8_000, pricing: { prompt: "0", completion: "0" } },
  {
    id: "acme/embed",
    surface: "embeddings",
    context_length: 8_000,
    pricing: { prompt: "0.10", completion: "0" },
  },
];

const clientOf = (options: { serverURL: string; apiKey: string }): OpenRouter =>
  new OpenRouterClient({ ...options, retryConfig: { strategy: "none" } });

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const { baseUrl } = upstream;
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        dialect: "openai-chat",
        base_url: baseUrl,
        api_key: "upstream-secret",
        models,
      }),
      provider({ id: "own", dialect: "openai-chat", base_url: baseUrl, models: [chatModel] }),
      provider({
        id: "quiet",
        dialect: "openai-chat",
        base_url: baseUrl,
        api_key: "upstream-secret",
        data_policy: { zdr: true },
        models: [{ id: "quiet/large", pricing }],
      }),
    ],
  });
  const serverURL = gateway.baseUrl;
  client = clientOf({ serverURL, apiKey: testLlmKey });
  manager = clientOf({ serverURL, apiKey: testManagementKey });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

type Read = Readonly<Record<string, unknown>>;

async function allOf(pages: Promise<AsyncIterable<{ result: { data: Read[] } }>>): Promise<Read[]> {
  const found: Read[] = [];
  for await (const { result } of await pages) found.push(...result.data);
  return found;
}

const listed = (request?: { limit: number }): Promise<Read[]> => allOf(client.models.list(request));

test("models.list reads the catalog, whole and in pages, with the known fields of each model", async () => {
  const all = await listed();
  expect(all.map(({ id }) => id)).toEqual(expect.arrayContaining(models.map(({ id }) => id)));
  expect(await listed({ limit: 2 })).toEqual(all);
  expect(all.find(({ id }) => id === "acme/large")).toMatchObject({
    name: "large",
    canonicalSlug: "acme/large",
    contextLength: 128_000,
    supportedParameters: ["tools"],
    defaultParameters: null,
    perRequestLimits: null,
    supportedVoices: null,
    pricing: { prompt: "0.0000005", completion: "0.0000015" },
    architecture: {
      modality: "text+image->text",
      inputModalities: ["text", "image"],
      outputModalities: ["text"],
    },
    topProvider: { contextLength: 128_000, maxCompletionTokens: 4_096, isModerated: false },
    reasoning: { supportedEfforts: ["low", "high"], defaultEffort: "low", mandatory: true },
  });
  expect(all.find(({ id }) => id === "acme/embed")).toMatchObject({
    architecture: { modality: "text->embeddings" },
  });
});

test("endpoints.list reads the providers that serve a model to the caller", async () => {
  const { data } = await client.endpoints.list({ author: "acme", slug: "large" });
  expect(data).toMatchObject({
    id: "acme/large",
    name: "large",
    architecture: { modality: "text+image->text", tokenizer: null },
    endpoints: [
      {
        name: "acme | acme/large",
        modelId: "acme/large",
        tag: "acme",
        contextLength: 128_000,
        maxCompletionTokens: 4_096,
        supportedParameters: ["tools"],
        supportsToolChoice: { auto: false, required: false },
        supportsImplicitCaching: false,
        pricing: { prompt: "0.0000005", completion: "0.0000015", discount: 0 },
        status: 0,
        uptimeLast5m: null,
        latencyLast30m: null,
      },
    ],
  });
  const embeddings = await client.endpoints.list({ author: "acme", slug: "embed" });
  expect(embeddings.data.endpoints).toMatchObject([{ maxCompletionTokens: null }]);
});

test("lists of a key's own models, of embeddings and of providers that retain nothing are read", async () => {
  const bearer = { bearer: testLlmKey };
  const own = await allOf(client.models.listForUser(bearer));
  expect(own).toEqual(await listed());
  expect(await allOf(client.models.listForUser(bearer, { limit: 2 }))).toEqual(own);
  expect((await allOf(client.embeddings.listModels())).map(({ id }) => id)).toEqual(["acme/embed"]);
  const { data: model } = await client.models.get({ author: "acme", slug: "large" });
  expect(model).toEqual(own.find(({ id }) => id === "acme/large") ?? {});
  expect((await client.endpoints.listZdrEndpoints()).data).toMatchObject([
    { modelId: "quiet/large", tag: "quiet", pricing: { prompt: "0.0000005" } },
  ]);
});

test("rerank.rerank reads the documents, and an error has its class and its code", async () => {
  const sandbox = await startGateway({ sandbox: true });
  const { rerank } = clientOf({ serverURL: sandbox.baseUrl, apiKey: testLlmKey });
  const documents = ["a hen", "a fox"];
  const requestBody = { model: "sandbox/rerank:free", query: "fox", documents };
  const { results } = await rerank.rerank({ requestBody });
  expect(results.map(({ document }) => document)).toEqual([{ text: "a fox" }, { text: "a hen" }]);
  await sandbox.stop();
  await expect(client.models.get({ author: "acme", slug: "none" })).rejects.toMatchObject({
    name: "NotFoundResponseError",
    error: { code: 404, metadata: { code: "not_found" } },
  });
});

test("models.count counts the publicly reachable models", async () => {
  const list = (await (await fetch(`${gateway.baseUrl}/models`)).json()) as { data: unknown[] };
  expect(await client.models.count()).toEqual({ data: { count: list.data.length } });
});

test("providers.list reads every provider", async () => {
  const { data } = await client.providers.list();
  expect(data.find(({ slug }) => slug === "acme")).toEqual(
    expect.objectContaining({ name: "acme", privacyPolicyUrl: null }),
  );
});

test("a request's charge is in the credits, the key's record and its generation", async () => {
  const before = (await client.credits.getCredits()).data;
  const answer = await client.chat.send({
    chatRequest: {
      model: "acme/large",
      messages: [{ role: "user", content: "Say something." }],
      maxTokens: 100,
    },
  });
  if (!("usage" in answer) || !("id" in answer)) throw new Error("a whole answer was expected");
  const cost = Number(answer.usage?.cost);
  expect(cost).toBeGreaterThan(0);

  const generation = (await client.generations.getGeneration({ id: String(answer.id) })).data;
  expect(generation).toMatchObject({
    apiType: "completions",
    model: "acme/large",
    providerName: "acme",
    totalCost: cost,
    usage: cost,
    isByok: false,
    streamed: false,
    cancelled: false,
    finishReason: "stop",
    origin: "",
    httpReferer: null,
    dataRegion: "global",
    router: null,
    appId: null,
    providerResponses: [
      {
        providerName: "acme",
        status: 200,
        isByok: false,
        modelPermaslug: "acme/large",
        latency: expect.any(Number),
      },
    ],
  });
  const key = (await client.apiKeys.getCurrentKeyMetadata()).data;
  expect(key).toMatchObject({
    usage: cost,
    usageDaily: cost,
    byokUsage: 0,
    isManagementKey: false,
    allowedDataRegions: ["global"],
    workspaceId: generation["workspaceId"],
    organizationId: null,
  });
  const after = (await client.credits.getCredits()).data;
  expect(Number(after["totalUsage"]) - Number(before["totalUsage"])).toBeCloseTo(cost, 6);
  expect(after["totalCredits"]).toBe(before["totalCredits"]);
});

test("analytics.getUserActivity reads the days of a workspace, of one key and of one person", async () => {
  await client.chat.send({
    chatRequest: { model: "quiet/large", messages: [{ role: "user", content: "Hello" }] },
  });
  const { data: keys } = await manager.apiKeys.list();
  const hash = String(keys.find(({ usage }) => Number(usage) > 0)?.["hash"]);
  const { data: all } = await manager.analytics.getUserActivity();
  const quiet = all.filter(({ model }) => model === "quiet/large");
  expect(quiet).toEqual([
    {
      date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      model: "quiet/large",
      modelPermaslug: "quiet/large",
      endpointId: "quiet/quiet/large",
      providerName: "quiet",
      requests: 1,
      promptTokens: expect.any(Number),
      completionTokens: expect.any(Number),
      reasoningTokens: 0,
      usage: expect.any(Number),
      byokUsageInference: 0,
    },
  ]);
  expect((await manager.analytics.getUserActivity({ apiKeyHash: hash })).data).toEqual(all);
  expect((await manager.analytics.getUserActivity({ userId: "usr_nobody" })).data).toEqual([]);
  const { date = "", workspaceId = "" } = {
    ...(await manager.analytics.getUserActivity({ groupBy: "workspace" })).data[0],
  } as Record<string, string>;
  const ofDay = await manager.analytics.getUserActivity({ date, workspaceId });
  expect(ofDay.data).toEqual(all.filter((row) => row["date"] === date));
});

test("a management key lists, shows, changes and deletes keys, with their spend", async () => {
  const created = await fetch(`${gateway.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "temporary", limit: 5 }),
  });
  const { hash } = ((await created.json()) as { data: { hash: string } }).data;
  const current = (await client.apiKeys.getCurrentKeyMetadata()).data;
  const { data: all } = await manager.apiKeys.list();
  expect(all.find((key) => key["label"] === current["label"])).toMatchObject({
    usage: current["usage"],
    usageDaily: current["usageDaily"],
    byokUsage: current["byokUsage"],
    workspaceId: current["workspaceId"],
    externalUser: null,
  });
  const renamed = { hash, requestBody: { name: "renamed", limit: 7 } };
  expect((await manager.apiKeys.update(renamed)).data).toMatchObject({ limit: 7, usage: 0 });
  expect((await manager.apiKeys.get({ hash })).data).toMatchObject({ name: "renamed" });
  expect(await manager.apiKeys.delete({ hash })).toEqual({ deleted: true });
});

test("requests to free models are counted per day", async () => {
  const { freeModelDailyRequests: before } = (await client.apiKeys.getCurrentKeyMetadata())
    .data as { freeModelDailyRequests: Quota };
  await client.chat.send({
    chatRequest: {
      model: "acme/small:free",
      messages: [{ role: "user", content: "Hello" }],
      maxTokens: 100,
    },
  });
  const { freeModelDailyRequests: after } = (await client.apiKeys.getCurrentKeyMetadata()).data as {
    freeModelDailyRequests: Quota;
  };
  expect([after.used - before.used, after.limit - before.limit, after.limit - after.used]).toEqual([
    1,
    0,
    after.remaining,
  ]);
});

interface Quota {
  limit: number;
  used: number;
  remaining: number;
}
