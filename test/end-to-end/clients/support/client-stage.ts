import { afterAll, beforeAll, beforeEach } from "bun:test";
import {
  startScriptedUpstream,
  type ScriptedDialect,
  type ScriptedUpstream,
} from "../../../support/scripted-upstream/scripted-upstream.ts";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../../support/gateway.ts";
import type { ClientOptions } from "./client-under-test.ts";

/** The dialects behind the gateway that every client is to see alike. */
export const upstreamDialects: readonly ScriptedDialect[] = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
];

/** The model that is served in a dialect. */
export const modelIn = (dialect: ScriptedDialect): string => `scripted/${dialect}`;

/**
 * A model that coding agents know and have a set of tools for; every provider serves it, and is
 * chosen by its name.
 */
export const codingModel = "openai/gpt-5.5";

/** A model whose answers are shorter than coding agents ask for without being asked. */
export const briefModel = "scripted/brief";

/** A model with two providers, both of the scripted upstream. */
export const modelWithBackup = "scripted/twice";

const pricing = { prompt: "0.50", completion: "1.50", search: "0.01" };

/** What scripted answers cost in USD: 11 tokens in and 7 out. */
export const scriptedCost = 0.000016;

const modelEntry = (id: string): Record<string, unknown> => ({
  id,
  context_length: 262_144,
  max_completion_tokens: 131_072,
  pricing,
});

const entry = (
  id: string,
  dialect: string,
  { models, baseUrl }: { models: string[]; baseUrl: string },
) =>
  provider({
    id,
    dialect,
    base_url: baseUrl,
    api_key: "upstream-secret",
    models: models.map(modelEntry),
  });

const briefEntry = (baseUrl: string) =>
  provider({
    id: "brief",
    dialect: "openai-chat",
    base_url: baseUrl,
    api_key: "upstream-secret",
    models: [{ ...modelEntry(briefModel), max_completion_tokens: 4096 }],
  });

/** A gateway over a scripted upstream, for all tests of a file. */
export interface ClientStage {
  readonly gateway: TestGateway;
  readonly upstream: ScriptedUpstream;
  /** How a client reaches the gateway: without retries, with a good key. */
  options(changes?: Partial<ClientOptions>): ClientOptions;
}

/** Starts a stage before the tests of the file that calls it, and ends it after them. */
export function clientStage(): ClientStage {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  beforeAll(async () => {
    upstream = await startScriptedUpstream();
    const { baseUrl } = upstream;
    gateway = await startGateway({
      providers: [
        ...upstreamDialects.map((dialect) =>
          entry(dialect, dialect, { baseUrl, models: [modelIn(dialect), codingModel] }),
        ),
        briefEntry(baseUrl),
        entry("first", "openai-chat", { baseUrl, models: [modelWithBackup] }),
        entry("second", "openai-chat", { baseUrl, models: [modelWithBackup] }),
      ],
    });
  });
  beforeEach(() => upstream.forget());
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
  });
  return {
    get gateway() {
      return gateway;
    },
    get upstream() {
      return upstream;
    },
    options: (changes = {}) => ({
      origin: gateway.origin,
      apiKey: testLlmKey,
      retries: 0,
      ...changes,
    }),
  };
}
