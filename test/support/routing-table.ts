import type {
  CatalogModel,
  CatalogSnapshot,
  RouterName,
  UpstreamRoute,
} from "../../src/inference/catalog/model.ts";
import { picoPerTokenFromUsdPerMillion } from "../../src/platform/kernel/money.ts";

/** One row of a routing table; see routing-rules.test.ts for the format of a table. */
export interface RoutingRow {
  shows: string;
  catalog: CatalogSnapshot;
  /** The present state, and what the request asks. */
  given: string;
  order: string;
  /** The reason of the first candidate; empty where the row does not check it. */
  why: string;
}

const usd = (price: string | undefined): bigint =>
  picoPerTokenFromUsdPerMillion(price ?? "0") ?? 0n;
/** Returns a number from text, in which `2k` is two thousand. */
export const thousands = (text: string): number =>
  text.endsWith("k") ? Number(text.slice(0, -1)) * 1_000 : Number(text);

/** Words about a route in the catalog of a table. */
const routeWords: readonly (readonly [
  RegExp,
  (match: RegExpExecArray, route: UpstreamRoute) => Partial<UpstreamRoute>,
])[] = [
  [/^zdr$/, (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, zdr: true } })],
  [
    /^collects nothing$/,
    (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, dataCollection: "deny" } }),
  ],
  [
    /^distillable$/,
    (_, { dataPolicy }) => ({ dataPolicy: { ...dataPolicy, distillableText: true } }),
  ],
  [/^no JSON$/, () => ({ supportedParameters: ["temperature", "tools"] })],
  [/^no tools$/, () => ({ supportedParameters: ["temperature"] })],
  [/^holds (\d+k)$/, ([, size = ""]) => ({ contextLength: thousands(size) })],
  [/^writes (\d+k)$/, ([, size = ""]) => ({ maxCompletionTokens: thousands(size) })],
  [
    /^(\d+) USD above (\d+k)$/,
    ([, price, size = ""], { price: row }) =>
      row === undefined
        ? {}
        : {
            price: {
              ...row,
              tiers: [
                {
                  aboveInputTokens: thousands(size),
                  price: { inputTokens: usd(price), outputTokens: usd(price) },
                },
              ],
            },
          },
  ],
  [/^(?:fp|bf|int)\d+$/, ([quantization]) => ({ quantization })],
];

/**
 * Reads `provider price USD, words`. A price is that of a million tokens in and of a million out,
 * or `in/out`.
 */
export function readRoute(text: string): UpstreamRoute {
  const [, id = "", prices = "", words = ""] = /^(\S+) +(\S+) USD(?:, (.*))?$/.exec(text) ?? [];
  const [prompt, completion = prompt] = prices.split("/");
  let route: UpstreamRoute = {
    provider: {
      id,
      name: `${id} Inc`,
      baseUrl: "http://127.0.0.1",
      apiKey: "k",
      dialects: { chat: "openai-chat" },
      deviations: {},
      dataPolicy: {},
      credentialHeader: { name: "authorization", prefix: "Bearer " },
      timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1, totalMs: 1 },
    },
    upstreamModel: "m",
    price: { version: id, base: { inputTokens: usd(prompt), outputTokens: usd(completion) } },
  };
  for (const word of words.split(", ").filter(Boolean)) {
    const known = routeWords.find(([pattern]) => pattern.test(word));
    if (known !== undefined)
      route = { ...route, ...known[1](known[0].exec(word) as RegExpExecArray, route) };
    else if (!(word in modelWords))
      throw new Error(`the table says ${JSON.stringify(word)} of a route`);
  }
  return route;
}

const modelWords: Readonly<Record<string, string>> = {
  "sees images": "vision",
  thinks: "reasoning",
};

/**
 * Reads lines `model: route`, `model: route`, ..., `service/auto: quality members; other members`.
 */
export function readCatalog(lines: readonly string[]): CatalogSnapshot {
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
    const capabilities = Object.keys(modelWords)
      .filter((word) => text.includes(word))
      .map((word) => modelWords[word] ?? "");
    models.set(id, {
      id,
      displayName: id,
      owner: "acme",
      surface: "chat",
      category: "text",
      contextLength: route.contextLength ?? 100_000,
      addedAtMs: 0,
      capabilities: [...(old?.capabilities ?? []), ...capabilities],
      routes: [...(old?.routes ?? []), route],
    });
  }
  const providers = [...models.values()].flatMap(({ routes }) =>
    routes.map(({ provider }) => provider),
  );
  return {
    version: "test",
    models,
    providers: new Map(providers.map((provider) => [provider.id, provider])),
  };
}

function readRouter(
  id: string,
  text: string,
  models: ReadonlyMap<string, CatalogModel>,
): CatalogModel {
  const [quality = [], others = []] = text.split(";").map((list) =>
    list
      .trim()
      .split(", ")
      .filter(Boolean)
      .map((name) => models.get(`acme/${name}`) as CatalogModel),
  );
  const members = [...quality, ...others];
  return {
    id,
    displayName: id,
    owner: "service",
    surface: "chat",
    category: "text",
    contextLength: 0,
    addedAtMs: 0,
    capabilities: [],
    routes: members.flatMap(({ routes }) => routes),
    router: {
      name: id.slice("service/".length) as RouterName,
      members,
      qualityCount: quality.length,
      missing: [],
    },
  };
}

/**
 * Reads tables: a block of catalog lines, then rows `shows | given | order`. A row without a first
 * cell continues the one above.
 */
export function readRoutingTable(text: string): RoutingRow[] {
  return text
    .split(/^catalog$/m)
    .slice(1)
    .flatMap((section) => {
      const lines = section
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean);
      const isRow = (line: string): boolean => line.includes("|") || line.startsWith("because ");
      const catalog = readCatalog(lines.filter((line) => !isRow(line)));
      const rows: RoutingRow[] = [];
      for (const line of lines.filter(isRow)) {
        const [shows = "", given = "", order = ""] = line.split("|").map((cell) => cell.trim());
        const above = rows.at(-1);
        if (above !== undefined && line.startsWith("because "))
          above.why = line.slice("because ".length);
        else if (above !== undefined && shows === "") above.given += `; ${given}`;
        else rows.push({ shows, catalog, given, order, why: "" });
      }
      return rows;
    });
}
