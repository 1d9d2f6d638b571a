import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App, AppTools } from "../../src/app/app.ts";
import { createApp } from "../../src/app/create-app.ts";
import type { AppSettings } from "../../src/app/settings-of.ts";
import { HttpServer } from "../../src/http/http-server.ts";
import {
  configuredProviderSchema,
  type ConfiguredProvider,
} from "../../src/inference/catalog/configured/configured-provider.ts";
import { createLogger } from "../../src/platform/telemetry/logger.ts";
import { createMetrics, type Metrics } from "../../src/platform/telemetry/metrics.ts";
import { noTracing } from "../../src/platform/telemetry/tracing.ts";
import { putMigratedSqlite } from "./migrated-sqlite.ts";

export const testLlmKey = "sk-svc-v1-testtesttesttesttesttesttesttest";
export const testManagementKey = "ak_test_management_key_with_all_scopes";

/** Returns a `providers:` entry, in the form of switchyard.yaml and checked by the same schema. */
export const provider = (entry: unknown): ConfiguredProvider =>
  configuredProviderSchema.parse(entry);

/**
 * Returns an openai-chat provider named `acme` that serves `acme/large` for 0.50 and 1.50 USD per
 * million tokens.
 */
export const acme = (baseUrl: string, changes: Record<string, unknown> = {}): ConfiguredProvider =>
  provider({
    id: "acme",
    name: "Acme Inference",
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "upstream-secret",
    models: [
      {
        id: "acme/large",
        upstream_model: "large-v2",
        context_length: 131072,
        pricing: { prompt: "0.50", completion: "1.50" },
      },
    ],
    ...changes,
  });

export interface TestGateway {
  app: App;
  /** `http://127.0.0.1:PORT/api/v1`. */
  baseUrl: string;
  origin: string;
  metrics: Metrics;
  /** The logged lines. */
  logLines: string[];
  /** POSTs JSON, or raw text, with the test's LLM key. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

/**
 * Forgets the failures of a provider. Ten failures in a row over ten seconds would exclude it from
 * routing, and whether a table of failures takes that long depends on the machine.
 */
export const forgetFailuresOf = ({ app }: TestGateway, providerId: string): void =>
  app.insights.health.clear(providerId);

const quickTools = {
  // Signing in takes most of the time of many tests; password-hasher.test.ts pins the real cost.
  passwordCost: { memoryKib: 64, passes: 1 },
  // Upstreams receive no request other than the test's own.
  smoke: {
    providerIds: () => [],
    ask: async () => ({ outcome: "skipped", message: "not here" }),
  },
} satisfies Partial<AppTools>;

const ownerKeys = {
  llmKey: testLlmKey,
  managementKey: testManagementKey,
  creditsNanoUsd: 10_000_000_000n,
  plan: "enterprise",
} satisfies AppSettings["bootstrap"];

/**
 * Starts a gateway in this process on a free port, over an empty SQLite database that is removed
 * afterwards.
 */
export async function startGateway(
  changes: Partial<AppSettings> = {},
  tools: Partial<AppTools> = {},
): Promise<TestGateway> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-test-"));
  const logLines: string[] = [];
  const metrics = createMetrics();
  const app = await createApp(
    {
      version: "0.0.0-test",
      storageUrl: changes.storageUrl ?? (await putMigratedSqlite(directory)),
      durability: "process",
      encryptionKey: new Uint8Array(32).fill(7),
      environment: {},
      providers: [],
      sandbox: false,
      plans: {},
      bootstrap: ownerKeys,
      generationDays: 90,
      logBudgetBytes: 1e10,
      responseDays: 30,
      trustProxy: false,
      disconnect: "abort",
      metricsElsewhere: false,
      publicUrl: () => "http://127.0.0.1",
      ...changes,
    },
    {
      logger: createLogger({ level: "debug", write: (line) => void logLines.push(line) }),
      metrics,
      tracing: noTracing,
      ...quickTools,
      ...tools,
    },
  );
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    ...app,
    bodyMemoryBytes: 1024 ** 3,
    onError: (error) => void logLines.push(`the server failed: ${String(error)}`),
  });
  const origin = `http://127.0.0.1:${server.port}`;
  const baseUrl = `${origin}/api/v1`;
  return {
    app,
    baseUrl,
    origin,
    metrics,
    logLines,
    post: (path, body, init = {}) =>
      fetch(baseUrl + path, {
        method: "POST",
        ...init,
        headers: {
          authorization: `Bearer ${testLlmKey}`,
          "content-type": "application/json",
          ...(init.headers as Record<string, string>),
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    get: (path, headers = {}) =>
      fetch(baseUrl + path, { headers: { authorization: `Bearer ${testLlmKey}`, ...headers } }),
    async stop() {
      await server.stop(true);
      await app.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
