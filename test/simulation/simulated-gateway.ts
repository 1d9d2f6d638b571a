import type { Kysely } from "kysely";
import { AccountBook } from "../../src/billing/ledger/book/account-book.ts";
import { Ledger } from "../../src/billing/ledger/ledger.ts";
import type { LlmKeyCaller } from "../../src/identity/keys/caller.ts";
import { withInsights } from "../../src/app/observe.ts";
import { buildCatalog } from "../../src/inference/catalog/build-catalog.ts";
import type { InferenceDependencies } from "../../src/inference/pipeline/execution.ts";
import { execute } from "../../src/inference/pipeline/execute.ts";
import type { ChatCall } from "../../src/inference/pipeline/inference-call.ts";
import { HealthWindows } from "../../src/inference/routing/health/health-windows.ts";
import { smokePort } from "../../src/inference/pipeline/unbilled-requests.ts";
import { createTargetLookup } from "../../src/inference/pipeline/upstream-targets.ts";
import type {
  UpstreamClient,
  UpstreamRequest,
  UpstreamResponse,
} from "../../src/inference/upstream/upstream-client.ts";
import { Contents } from "../../src/insights/archive/contents.ts";
import type { AttemptRecord } from "../../src/insights/generation-record.ts";
import {
  openInsights,
  type Insights,
  type InsightTables,
} from "../../src/insights/open-insights.ts";
import type { CommitQueue } from "../../src/platform/storage/commit-queue.ts";
import { provider } from "../support/gateway.ts";
import { callOn, planDependencies, type Body } from "../support/planned-body.ts";
import { responseOf, type Behaviour } from "./faults.ts";
import type { VirtualTime } from "./virtual-time.ts";
import { noFacts } from "../support/no-facts.ts";

/** Providers of one model, each a little dearer than the one before. */
const catalogOf = (providers: readonly string[]) =>
  buildCatalog({
    environment: {},
    nowMs: 0,
    facts: noFacts,
    configuredProviders: providers.map((id, index) =>
      provider({
        id,
        base_url: `http://${id}.test/v1`,
        dialect: "openai-chat",
        api_key: "k",
        models: [
          {
            id: "acme/large",
            pricing: { prompt: `${1 + index / 10}`, completion: `${1 + index / 10}` },
          },
        ],
      }),
    ),
  });

const answer = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "large",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});

/** Charges that are booked and written nowhere. */
const forgetfulCommits: CommitQueue = {
  commit: () => Promise.resolve(),
  flush: () => Promise.resolve(),
  pendingCount: 0,
  rejectedCount: 0,
  stalled: false,
  admits: () => true,
};

const owner = {
  kind: "llm-key",
  workspace: { id: "ws" },
  key: {
    id: "key",
    allowedModels: null,
    limitNanoUsd: null,
    limitReset: null,
    includeByokInLimit: false,
  },
} as LlmKeyCaller;

/** What became of one request. */
export interface Outcome {
  ok: boolean;
  attempts: readonly AttemptRecord[];
}

/**
 * The gateway's own way of a request, its health and its retry budgets, between virtual callers and
 * virtual providers.
 */
export interface SimulatedGateway {
  insights: Insights;
  ask(body: Body): Promise<Outcome>;
}

/**
 * Sockets that lead to no provider: what it would do is asked, and happens when its time has come.
 */
const simulatedUpstream = (
  time: VirtualTime,
  behaviourOf: (providerId: string) => Behaviour,
): Pick<UpstreamClient, "send"> => ({
  send: ({ target }: UpstreamRequest) =>
    new Promise<UpstreamResponse>((resolve, reject) => {
      const behaviour = behaviourOf(target.origin.host.split(".")[0] ?? "");
      time.after(behaviour.afterMs, () => {
        try {
          resolve(responseOf(behaviour, answer));
        } catch (error) {
          reject(error);
        }
      });
    }),
});

/** Settings that no simulated request depends on. */
const quiet = {
  disconnect: "abort",
  errorAddress: () => "",
  sealMemory: { isUsed: false },
} as const;

const onError = (error: unknown): never => {
  throw error;
};

const simulatedStorage = {
  commits: forgetfulCommits,
  kind: "sqlite",
  version: "simulated",
  probePostgres: undefined,
  onError,
  onExcess: () => undefined,
} as const;

const unused = (): never => {
  throw new Error("the simulation keeps no prompts and answers");
};

/** Prompts and answers that no workspace keeps. */
const keepsNothing = {
  commits: forgetfulCommits,
  archived: undefined,
  vault: { sealRecord: unused, openRecord: unused, learn: unused },
  keepDays: 1,
  budgetCharacters: 0,
  keptSince: () => Promise.resolve(new Map<string, number>()),
  onDropped: unused,
  onError,
};

/** Builds the gateway; `behaviourOf` is asked for each attempt. */
export async function simulateGateway(
  providers: readonly string[],
  options: {
    time: VirtualTime;
    random: () => number;
    database: Kysely<InsightTables>;
    behaviourOf(providerId: string): Behaviour;
  },
): Promise<SimulatedGateway> {
  const { time, random, database } = options;
  const { clock } = time;
  const book = new AccountBook();
  book.workspace("ws").topupNano = 10n ** 18n;
  const catalog = catalogOf(providers);
  const upstream = simulatedUpstream(time, options.behaviourOf) as UpstreamClient;
  const insights = await openInsights({
    database,
    ...simulatedStorage,
    clock,
    openContents: (table) => new Contents({ ...keepsNothing, database: table, clock }),
    ports: {
      describeModel: () => undefined,
      isPublic: () => true,
      routed: () => [],
      smoke: smokePort(() => deps),
      budgets: new Map(),
    },
  });
  const observer = withInsights(
    {
      attemptEnded: () => undefined,
      settled: () => undefined,
      failed: () => undefined,
      settlementFailed: onError,
      earlyStreamFailed: onError,
      responseNotKept: onError,
      streamOpened: () => undefined,
      streamClosed: () => undefined,
    },
    insights,
  );
  const deps = {
    ...planDependencies(catalog, {
      clock,
      random,
      health: new HealthWindows(clock, insights.stateOf),
    }),
    clock,
    upstream,
    observer,
    unsettled: insights.unsettled,
    uncollected: { keep: () => undefined, count: 0, stop: () => Promise.resolve() },
    targetOf: createTargetLookup({ clock, upstream }),
    ...quiet,
    chargesStall: () => false,
    ledger: new Ledger({ book, commits: forgetfulCommits, clock }),
    providerKeys: {
      concern: () => false,
      release: () => undefined,
    } as unknown as InferenceDependencies["providerKeys"],
    callSignatures: { of: () => undefined } as unknown as InferenceDependencies["callSignatures"],
  } as unknown as InferenceDependencies;
  let asked = 0;
  return {
    insights,
    ask: (body) =>
      outcomeOf(deps, {
        ...callOn("chat", body),
        caller: owner,
        startedMs: time.nowMs,
        generationId: `gen_${(asked += 1)}`,
      }),
  };
}

async function outcomeOf(deps: InferenceDependencies, call: ChatCall): Promise<Outcome> {
  let attempts: readonly AttemptRecord[] = [];
  const { observer } = deps;
  const watched = {
    ...observer,
    failed: (request: Parameters<typeof observer.failed>[0]) => {
      ({ attempts } = request);
      observer.failed(request);
    },
  };
  try {
    ({ attempts } = await execute({ ...deps, observer: watched }, call));
    return { ok: true, attempts };
  } catch {
    return { ok: false, attempts };
  }
}
