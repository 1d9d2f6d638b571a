import type { CatalogModel, CatalogSnapshot, RouterName, UpstreamRoute } from "../../src/inference/catalog/model.ts";
import { HealthWindows } from "../../src/inference/routing/health-windows.ts";
import { planRoute, type RoutePlan } from "../../src/inference/routing/plan-route.ts";
import { providerFilter } from "../../src/inference/routing/provider-filter.ts";
import type { InputKind } from "../../src/inference/routing/request-needs.ts";
import { resolveModel } from "../../src/inference/routing/resolve-models.ts";
import { StickySessions } from "../../src/inference/routing/sticky-sessions.ts";
import { GatewayError } from "../../src/platform/lib/errors.ts";
import { picoPerTokenFromUsdPerMillion } from "../../src/platform/lib/money.ts";
import { FakeClock } from "./fake-clock.ts";

/** One row of a routing table; see routing-rules.test.ts for how a table is written. */
export interface RoutingRow {
  shows: string;
  catalog: CatalogSnapshot;
  /** What is so at present, and what the request says. */
  given: string;
  order: string;
  /** The reason of the first candidate; empty where the row says nothing of it. */
  why: string;
}

/** A situation that a table's words describe, planned. */
export interface RoutingOutcome {
  /** In the words of the table's last columns. */
  order: string;
  why: string;
  plan: RoutePlan | undefined;
}

const usd = (price: string | undefined): bigint => picoPerTokenFromUsdPerMillion(price ?? "0") ?? 0n;
const thousands = (text: string): number => (text.endsWith("k") ? Number(text.slice(0, -1)) * 1_000 : Number(text));

/** Words about a route in the catalog of a table. */
const routeWords: readonly (readonly [RegExp, (match: RegExpExecArray, route: UpstreamRoute) => Partial<UpstreamRoute>])[] = [
  [/^zdr$/, (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, zdr: true } })],
  [/^collects nothing$/, (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, dataCollection: "deny" } })],
  [/^distillable$/, (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, distillableText: true } })],
  [/^no JSON$/, () => ({ supportedParameters: ["temperature", "tools"] })],
  [/^no tools$/, () => ({ supportedParameters: ["temperature"] })],
  [/^holds (\d+k)$/, ([, size = ""]) => ({ contextLength: thousands(size) })],
  [/^writes (\d+k)$/, ([, size = ""]) => ({ maxCompletionTokens: thousands(size) })],
  [/^(\d+) USD above (\d+k)$/, ([, price, size = ""], { price: row }) => (row === undefined ? {} : {
    price: { ...row, tiers: [{ aboveInputTokens: thousands(size), price: { inputTokens: usd(price), outputTokens: usd(price) } }] },
  })],
  [/^(?:fp|bf|int)\d+$/, ([quantization]) => ({ quantization })],
];

/** `provider price USD, words`; a price is that of a million tokens in and of a million out, or `in/out`. */
function readRoute(text: string): UpstreamRoute {
  const [, id = "", prices = "", words = ""] = /^(\S+) +(\S+) USD(?:, (.*))?$/.exec(text) ?? [];
  const [prompt, completion = prompt] = prices.split("/");
  let route: UpstreamRoute = {
    provider: {
      id, name: `${id} Inc`, baseUrl: "http://127.0.0.1", apiKey: "k", dialects: { chat: "openai-chat" }, quirks: {}, dataPolicy: {},
      credentialHeader: { name: "authorization", prefix: "Bearer " }, timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 },
    },
    upstreamModel: "m",
    price: { version: id, base: { inputTokens: usd(prompt), outputTokens: usd(completion) } },
  };
  for (const word of words.split(", ").filter(Boolean)) {
    const known = routeWords.find(([pattern]) => pattern.test(word));
    if (known !== undefined) route = { ...route, ...known[1](known[0].exec(word) as RegExpExecArray, route) };
    else if (!(word in modelWords)) throw new Error(`the table says ${JSON.stringify(word)} of a route`);
  }
  return route;
}

const modelWords: Readonly<Record<string, string>> = { "sees images": "vision", thinks: "reasoning" };

/** Lines `model: route`, `model: route`, ..., `service/auto: quality members; other members`. */
function readCatalog(lines: readonly string[]): CatalogSnapshot {
  const models = new Map<string, CatalogModel>();
  for (const line of lines) {
    const [, name = "", text = ""] = /^(\S+): +(.*)$/.exec(line.trim()) ?? [];
    const id = name.startsWith("service/") ? name : `acme/${name}`;
    const old = models.get(id);
    if (id === name) {
      models.set(id, readRouter(id, text, models));
      continue;
    }
    const route = readRoute(text);
    const capabilities = Object.keys(modelWords).filter((word) => text.includes(word)).map((word) => modelWords[word] ?? "");
    models.set(id, {
      id, displayName: id, owner: "acme", surface: "chat", category: "text", contextLength: route.contextLength ?? 100_000, addedAtMs: 0,
      capabilities: [...(old?.capabilities ?? []), ...capabilities], routes: [...(old?.routes ?? []), route],
    });
  }
  return { version: "test", models, providers: new Map() };
}

function readRouter(id: string, text: string, models: ReadonlyMap<string, CatalogModel>): CatalogModel {
  const [quality = [], others = []] = text.split(";").map((list) => list.trim().split(", ").filter(Boolean)
    .map((name) => models.get(`acme/${name}`) as CatalogModel));
  const members = [...quality, ...others];
  return {
    id, displayName: id, owner: "service", surface: "chat", category: "text", contextLength: 0, addedAtMs: 0, capabilities: [],
    routes: members.flatMap(({ routes }) => routes),
    router: { name: id.slice("service/".length) as RouterName, members, qualityCount: quality.length, missing: [] },
  };
}

/** Reads tables: a block of catalog lines, then rows `shows | given | order`; without a first cell, a row goes on with the one above. */
export function readRoutingTable(text: string): RoutingRow[] {
  return text.split(/^catalog$/m).slice(1).flatMap((section) => {
    const lines = section.split("\n").map((line) => line.trim()).filter(Boolean);
    const isRow = (line: string): boolean => line.includes("|") || line.startsWith("because ");
    const catalog = readCatalog(lines.filter((line) => !isRow(line)));
    const rows: RoutingRow[] = [];
    for (const line of lines.filter(isRow)) {
      const [shows = "", given = "", order = ""] = line.split("|").map((cell) => cell.trim());
      const above = rows.at(-1);
      if (above !== undefined && line.startsWith("because ")) above.why = line.slice("because ".length);
      else if (above !== undefined && shows === "") above.given += `; ${given}`;
      else rows.push({ shows, catalog, given, order, why: "" });
    }
    return rows;
  });
}

interface Situation {
  health: HealthWindows;
  sessions: StickySessions;
}

const stateWords: Words<Situation> = [
  [/^(\S+) is out$/, ([, id = ""], { health }) => [1, 2].forEach(() => health.recordFailure(id))],
  [/^(\S+) is out for (\S+)$/, ([, id = "", model], { health }) => {
    // Most of the provider's attempts succeed, those of the model do not.
    [1, 2, 3].forEach(() => health.recordSuccess(id));
    [1, 2].forEach(() => health.recordFailure(id, `acme/${model}`));
  }],
  [/^(\S+) begins in (.+) s$/, ([, id = "", times = ""], { health }) =>
    times.split(" ").forEach((seconds) => health.recordSuccess(id, { firstTokenMs: Number(seconds) * 1_000 }))],
  [/^(\S+) makes (.+) tok\/s$/, ([, id = "", rates = ""], { health }) =>
    rates.split(" ").forEach((rate) => health.recordSuccess(id, { tokensPerSecond: Number(rate) }))],
  [/^session was at (\S+)@(\S+)(?: for (\S+))?$/, ([, model = "", id = "", asked], { sessions }) => {
    const route = readRoute(`${id} 1 USD`);
    const served = readCatalog([`${model}: ${id} 1 USD`]).models.get(`acme/${model}`) as CatalogModel;
    sessions.recordServed({ workspaceId: "ws", id: "s" }, {
      requestedModel: asked ?? `acme/${model}`,
      candidate: { model: served, route, modelIndex: 0, router: undefined, price: 0, reason: "", memberReason: "" },
    });
  }],
];

interface Wanted {
  models: string[];
  tools: boolean;
  wished?: string[];
  inputTokens?: number;
  maxOutputTokens?: number;
  inputs: Set<InputKind>;
  effort?: string;
  allowed: string[] | null;
  forced?: string[];
}

const requestWords: Words<Wanted> = [
  [/^model (.+)$/, ([, models = ""], wanted) => {
    wanted.models = models.split(" then ").map((id) => (id.startsWith("service/") ? id : `acme/${id}`));
  }],
  [/^tools$/, (_, wanted) => void (wanted.tools = true)],
  [/^JSON$/, (_, wanted) => void (wanted.wished = ["response_format"])],
  [/^images$/, (_, wanted) => void wanted.inputs.add("vision")],
  [/^(\d+k?) tokens in$/, ([, size = ""], wanted) => void (wanted.inputTokens = thousands(size))],
  [/^(\d+k?) tokens out$/, ([, size = ""], wanted) => void (wanted.maxOutputTokens = thousands(size))],
  [/^effort (\S+)$/, ([, effort = ""], wanted) => void (wanted.effort = effort)],
  [/^key may use (.+)$/, ([, ids = ""], wanted) => void (wanted.allowed = ids.split(" and ").map((id) => `acme/${id}`))],
  [/^header names (.+)$/, ([, ids = ""], wanted) => void (wanted.forced = ids.split(" then "))],
];

type Words<Target> = readonly (readonly [RegExp, (match: RegExpExecArray, target: Target) => void])[];

/** Does what the known words say, and gives back the others. */
function obey<Target>(said: readonly string[], words: Words<Target>, target: Target): string[] {
  return said.map((word) => word.trim()).filter((word) => {
    const known = words.find(([pattern]) => pattern.test(word));
    known?.[1](known[0].exec(word) as RegExpExecArray, target);
    return known === undefined && word !== "";
  });
}

/** Plans what a row describes. `random` 0 draws the cheapest. */
export function planRow({ catalog, given }: Pick<RoutingRow, "catalog" | "given">, random = () => 0): RoutingOutcome {
  const clock = new FakeClock();
  const situation = { health: new HealthWindows(clock), sessions: new StickySessions(clock) };
  const said = obey(given.split(";"), stateWords, situation);
  const wanted: Wanted = { models: [[...catalog.models.keys()][0] ?? ""], tools: false, inputs: new Set(), allowed: null };
  const fields = obey(said, requestWords, wanted);
  const nonsense = fields.filter((field) => !/^\w+: /.test(field));
  if (nonsense.length > 0) throw new Error(`the table says ${JSON.stringify(nonsense)}`);
  try {
    const resolved = wanted.models.map((id) => resolveModel(catalog, id));
    const preferences = providerFilter({
      provider: fields.length === 0 ? undefined : Bun.YAML.parse(`{${fields.join(", ")}}`),
      suffixSort: resolved[0]?.sort, suffixMinContext: resolved[0]?.minContext, forcedProviders: wanted.forced,
    });
    const plan = planRoute({
      models: resolved.map(({ model }) => model), preferences, parameters: [],
      needsTools: wanted.tools, wishedParameters: wanted.wished, allowedModels: wanted.allowed,
      maxOutputTokens: wanted.maxOutputTokens, inputTokens: wanted.inputTokens, session: { workspaceId: "ws", id: "s" },
      needs: () => ({ inputs: wanted.inputs, effort: wanted.effort }),
    }, { ...situation, random, isServable: () => true });
    return { ...inWords(plan, catalog), plan };
  } catch (error) {
    if (error instanceof GatewayError) return { order: `refused: ${error.param ?? error.code}`, why: error.code, plan: undefined };
    throw error;
  }
}

function inWords({ candidates, emptiedBy, moved }: RoutePlan, { models }: CatalogSnapshot): { order: string; why: string } {
  const nameOf = ({ model, route }: RoutePlan["candidates"][number]): string =>
    (models.size === 1 ? route.provider.id : `${model.id.slice("acme/".length)}@${route.provider.id}`);
  return {
    order: candidates.length === 0 ? `nobody: ${emptiedBy}` : candidates.map(nameOf).join(", ") + (moved ? " (moved)" : ""),
    why: candidates[0]?.reason ?? "",
  };
}
