import type { ScriptedAnswer } from "../../../support/scripted-upstream/scripted-answer.ts";
import type { VendorId } from "../../../support/strict-vendors/rule.ts";
import {
  startStrictUpstream,
  type ReceivedRequest,
  type StrictUpstream,
} from "../../../support/strict-vendors/strict-upstream.ts";
import { Gate } from "../../../support/upstream/gate.ts";
import { body, type Script } from "../../../support/upstream/steps.ts";
import { PromptCache, type PromptTokens } from "./prompt-cache.ts";

/** A model that two equal providers serve, both of them a vendor's strict double. */
interface Pair {
  vendor: VendorId;
  dialect: string;
  upstreamModel: string;
}

const pairs = {
  claude: {
    vendor: "anthropic",
    dialect: "anthropic-messages",
    upstreamModel: "claude-sonnet-4-6",
  },
  deepseek: { vendor: "deepseek", dialect: "openai-chat", upstreamModel: "deepseek-v4-flash" },
  gemini: {
    vendor: "google",
    dialect: "google-generate",
    upstreamModel: "gemini-3-flash-preview",
  },
  gpt: { vendor: "openai", dialect: "openai-responses", upstreamModel: "gpt-5.5" },
  mistral: { vendor: "mistral", dialect: "openai-chat", upstreamModel: "mistral-large-latest" },
  kimi: { vendor: "moonshotai", dialect: "openai-chat", upstreamModel: "kimi-k2.6" },
} as const satisfies Record<string, Pair>;

/** The name of a model that a pair of providers serves. */
export type PairName = keyof typeof pairs;

/** A request that a provider took, and its tokens. */
interface Served {
  model: PairName;
  /** The provider: the first or the second of its pair. */
  seat: "first" | "second";
  tokens: PromptTokens;
}

/** USD per million tokens, of every model. */
const prices = { prompt: 3, cache_read: 0.3, completion: 15, search: "0.01" };
const outputTokens = 40;
/**
 * The silence after which the gateway gives up a provider, a thirtieth of the default of 60 s, and
 * that between signs of life.
 */
const idleMs = 2_000;
const signMs = 250;
/** Signs of life before a slow answer: 2.5 s without content, which are to `idleMs` as 75 s to 60 s. */
const signs = 10;

const yaml = ({ baseUrl }: StrictUpstream): string =>
  JSON.stringify({
    providers: Object.entries(pairs).flatMap(([name, { vendor, dialect, upstreamModel }]) =>
      ["first", "second"].map((seat) => ({
        id: `${name}-${seat}`,
        like: vendor,
        dialect,
        base_url: `${baseUrl(vendor)}/${seat}`,
        api_key: "strict-secret",
        timeouts_ms: { first_token: idleMs, idle: idleMs },
        models: [
          {
            id: `pair/${name}`,
            upstream_model: upstreamModel,
            context_length: 262_144,
            max_completion_tokens: 65_536,
            pricing: prices,
            reasoning: { levels: ["low", "medium", "high"] },
          },
        ],
      })),
    ),
  });

/** Pairs of equal providers that answer as told, and count and cache what they are sent. */
export interface VendorPairs {
  /** The text of the switchyard.yaml of a gateway before them. */
  yaml: string;
  upstream: StrictUpstream;
  /** The requests that were taken, in order. */
  served: readonly Served[];
  /** Queues answers; a slow one comes after a long time in which the provider only pings. */
  say(answers: readonly ScriptedAnswer[], slow?: ScriptedAnswer): void;
  /**
   * Queues a summary, with which the conversation begins again: only tools and instructions of the
   * prompts after it may be known to a provider.
   */
  compact(summary: ScriptedAnswer): void;
  /** What `served` costs, in USD, at providers that had the whole of the model's prompt before. */
  idealCost(): number;
}

/** Starts the pairs. */
export async function startVendorPairs(): Promise<VendorPairs> {
  const upstream = await startStrictUpstream();
  const caches = new Map<string, PromptCache>();
  const served: Served[] = [];
  const queued: ScriptedAnswer[] = [];
  let slowAnswer: ScriptedAnswer | undefined;
  let summaryAt: number | undefined;
  const read = (request: ReceivedRequest): PromptTokens => {
    const seen = seatOf(request);
    const place = `${seen.model} ${seen.seat}`;
    const cache = caches.get(place) ?? new PromptCache();
    caches.set(place, cache);
    const tokens = cache.read(request);
    served.push({ ...seen, tokens });
    return tokens;
  };
  upstream.answerBy((request, write) => {
    const { all, cached } = read(request);
    const answer = queued.shift() ?? { text: ["Nothing is scripted."] };
    const script = write({ ...answer, usage: { input: all, cached, output: outputTokens } });
    return answer === slowAnswer ? slowed(script) : script;
  });
  return {
    yaml: yaml(upstream),
    upstream,
    served,
    say(answers, slow) {
      queued.push(...answers);
      slowAnswer = slow;
    },
    compact(summary) {
      summaryAt = served.length;
      queued.push(summary);
    },
    idealCost: () => idealCost(served, summaryAt),
  };
}

function seatOf({ vendor, path }: ReceivedRequest): Omit<Served, "tokens"> {
  const names = Object.keys(pairs) as PairName[];
  const model = names.find((name) => pairs[name].vendor === vendor);
  const seat = path.split("/")[2];
  if (model === undefined || (seat !== "first" && seat !== "second"))
    throw new Error(`no provider of a pair has the path ${path}`);
  return { model, seat };
}

/** Returns a stream that for long sends signs of life only. */
function slowed([head, ...rest]: Script): Script {
  if (head === undefined) return rest;
  const gates = Array.from({ length: signs }, () => new Gate());
  const remaining = [...gates];
  const timer = setInterval(() => {
    remaining.shift()?.open();
    if (remaining.length === 0) clearInterval(timer);
  }, signMs);
  return [head, ...gates.flatMap((gate) => [body(": ping\n\n"), gate]), ...rest];
}

/**
 * Returns the cost of requests of which each finds the model's prompt before it in the cache. The
 * request for a summary, and the two after it, find what they did find: Codex begins with prompts
 * of its own, which share no beginning.
 */
function idealCost(served: readonly Served[], summaryAt: number | undefined): number {
  const before = new Map<PairName, number>();
  let usd = 0;
  for (const [index, { model, tokens }] of served.entries()) {
    if (summaryAt !== undefined && index >= summaryAt && index <= summaryAt + 2) before.clear();
    const cached = Math.min(before.get(model) ?? tokens.cached, tokens.all);
    const fresh = tokens.all - cached;
    usd += cached * prices.cache_read + fresh * prices.prompt + outputTokens * prices.completion;
    before.set(model, tokens.all);
  }
  return usd / 1e6;
}
