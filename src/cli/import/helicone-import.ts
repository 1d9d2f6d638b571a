import {
  canBeAlias,
  type ImportPlan,
  isKnownVendor,
  type Upstream,
  vendorAt,
  withoutPrice,
} from "./import-plan.ts";
import { hostName, usableAddress } from "./server-address.ts";
import type { SourceDocument } from "./source-document.ts";
import type { SourceNode } from "./source-node.ts";

/** Helicone's names of providers that have another name here. */
const vendors: Readonly<Record<string, string>> = {
  bedrock: "amazon-bedrock",
  gemini: "google",
  "google-gemini": "google",
  hyperbolic: "hyperbolic",
  vertex: "google-vertex",
};

const reasons: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)cache(-store)?\b/, "there is no cache of answers; prompts are cached by the providers"],
  [/(^|\.)retries\b/, "the next provider or model is tried at once"],
  [
    /rate-limit-store/,
    "limits are kept in memory, or in shared.url where there are several gateways",
  ],
  [/^helicone\b/, "requests are traced to OpenTelemetry; see /docs/operate/observability"],
  [/^telemetry\b/, "see /docs/operate/observability"],
  [
    /^(discover|dispatcher|server|database|minio|deployment-target)/,
    "is part of the gateway's own configuration",
  ],
  [/^response-headers\b/, "X-Service-Provider-Chain is always sent"],
  [
    /model-mapping/,
    "requests fall back on other models by a list of models, or by an entry of aliases",
  ],
];

/** A model of Helicone: `provider/model`. */
interface Named {
  provider: string;
  wireName: string;
}

const namedIn = (text: string): Named | undefined => {
  const [, provider, wireName] = /^([^/]+)\/(.+)$/.exec(text) ?? [];
  return provider === undefined || wireName === undefined ? undefined : { provider, wireName };
};

/**
 * Reads the configuration of Helicone's AI gateway. Credentials are not in it: each provider reads
 * its own variable. Routers become names for models, or presets with rules for providers.
 */
export class HeliconeImport {
  /** Addresses of providers, by their names. */
  private readonly addresses = new Map<string, string>();

  constructor(private readonly plan: ImportPlan) {}

  /** Fills the plan from all files, starting with the providers. */
  run(sources: readonly SourceDocument[]): void {
    for (const { root } of sources)
      for (const [name, part] of root.get("providers")?.entries() ?? [])
        this.addProvider(name, part);
    for (const { root } of sources) {
      for (const [name, part] of root.get("routers")?.entries() ?? []) this.addRouter(name, part);
      for (const key of ["global", "unified-api"]) reportLimits(root.get(key)?.get("rate-limit"));
    }
    for (const source of sources)
      source.finish(
        (path) => reasons.find(([pattern]) => pattern.test(path))?.[1] ?? "has no counterpart",
      );
  }

  private addProvider(name: string, part: SourceNode): void {
    const address = part.get("base-url");
    const written = address?.text()?.replace(/\/+$/, "");
    if (address !== undefined && written !== undefined)
      this.addresses.set(name, usableAddress(address, written));
    part.get("version")?.whole();
    const upstream = this.upstreamOf(name, part);
    if (upstream === undefined) return;
    const models = part.get("models");
    if (models === undefined) {
      const id = this.plan.provider(upstream);
      if (typeof id === "object") part.report("left_out", id.problem);
      else part.report("imported", `${name} is the provider ${id}`);
      return;
    }
    for (const item of models.items()) {
      const wireName = item.text();
      if (wireName !== undefined) this.addModel({ provider: name, wireName }, item);
    }
  }

  /** Returns where a provider is; undefined where there is none, and then the report says so. */
  private upstreamOf(name: string, node: SourceNode): Upstream | undefined {
    const known = vendors[name] ?? name;
    const address = this.addresses.get(name);
    const at = address === undefined ? undefined : vendorAt(address);
    const vendor = isKnownVendor(known) ? known : at;
    if (vendor === undefined && address === undefined) {
      node.report("left_out", `names no provider that is known here: ${name}`);
      return undefined;
    }
    const isVendorsOwn = at !== undefined && at === vendor;
    const variable = `${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}_API_KEY`;
    if (name === "bedrock")
      node.report(
        "changed",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, without _ID and _ACCESS in Helicone's",
      );
    return {
      vendor,
      ...(vendor === undefined ? { name: name || hostName(address ?? "") } : {}),
      ...(address === undefined || isVendorsOwn || name === "bedrock"
        ? {}
        : { baseUrl: withVersion(address, vendor) }),
      ...(name === "bedrock" || name === "ollama" ? {} : { apiKey: `\${${variable}}` }),
    };
  }

  /** Adds a model and returns its id; undefined where it cannot be added. */
  private addModel(named: Named, node: SourceNode): string | undefined {
    const upstream = this.upstreamOf(named.provider, node);
    if (upstream === undefined) return undefined;
    const owner = upstream.vendor ?? named.provider;
    const id = this.plan.modelId(named.wireName, owner);
    const added = this.plan.addModel(upstream, {
      id,
      upstreamModel: named.wireName,
      settings: {},
    });
    if (typeof added === "object") {
      // A model that an earlier router or list names too is there already.
      node.report("left_out", `${named.wireName}: ${added.problem}`);
      return undefined;
    }
    const written = `${named.provider}/${named.wireName}`;
    const unpriced = withoutPrice(added);
    if (unpriced !== undefined) node.report("changed", `${id}: ${unpriced}`);
    else if (written !== id) node.report("changed", `clients write ${id} in place of ${written}`);
    else node.report("imported", `is ${id}`);
    return id;
  }

  private addRouter(name: string, router: SourceNode): void {
    reportLimits(router.get("rate-limit"));
    for (const [provider, part] of router.get("providers")?.entries() ?? []) {
      const address = part.get("base-url");
      const written = address?.text()?.replace(/\/+$/, "");
      if (address === undefined || written === undefined) continue;
      this.addresses.set(provider, usableAddress(address, written));
      address.report("changed", `is the address of ${provider} for all routers`);
      part.get("version")?.whole();
    }
    for (const [endpoint, balance] of router.get("load-balance")?.entries() ?? []) {
      const strategy = balance.get("strategy")?.text() ?? "";
      if (strategy === "model-weighted") this.addWeighted(name, balance);
      else if (strategy === "model-latency") this.addFastest(balance);
      else this.addProviders(name, balance, { endpoint, isByLatency: /latency/.test(strategy) });
    }
  }

  /** A router over models by weight is a name of that meaning. */
  private addWeighted(name: string, balance: SourceNode): void {
    const entries = (balance.get("models")?.items() ?? []).flatMap((item) => {
      const id = this.modelIn(item.get("model"));
      const weight = item.get("weight")?.number();
      return id === undefined || weight === undefined || weight <= 0 ? [] : [{ model: id, weight }];
    });
    if (entries.length === 0 || !canBeAlias(name)) {
      balance.report("left_out", "names no model that is known here");
      return;
    }
    this.plan.aliases.set(name, entries);
    balance.report(
      "imported",
      `clients write ${name} as the model, and the address without /router/${name}`,
    );
  }

  /** Names that mean the fastest of several models become names with fallbacks. */
  private addFastest(balance: SourceNode): void {
    for (const [name, list] of balance.get("models")?.entries() ?? []) {
      const ids = [...new Set(list.items().flatMap((item) => this.modelIn(item) ?? []))];
      const [first, ...others] = ids;
      if (first === undefined || !canBeAlias(name)) {
        list.report("left_out", "names no model that is known here");
        continue;
      }
      this.plan.aliases.set(name, others.length === 0 ? first : ids);
      list.report("changed", `${name} asks them in this order, not by their latency`);
    }
  }

  private modelIn(node: SourceNode | undefined): string | undefined {
    const written = node?.text();
    const named = written === undefined ? undefined : namedIn(written);
    if (node === undefined || named === undefined) return undefined;
    const vendor = vendors[named.provider] ?? named.provider;
    const id = this.plan.modelId(named.wireName, vendor);
    const isThere = this.plan.providers.some((each) =>
      each.models?.some((model) => model.id === id),
    );
    return isThere ? id : this.addModel(named, node);
  }

  /** A router over providers is a preset that allows only those. */
  private addProviders(
    name: string,
    balance: SourceNode,
    { endpoint, isByLatency }: { endpoint: string; isByLatency: boolean },
  ): void {
    const list = balance.get("providers") ?? balance.get("targets");
    const ids: string[] = [];
    for (const item of list?.items() ?? []) {
      const provider = item.text() ?? item.get("provider")?.text();
      item
        .get("weight")
        ?.report("changed", "providers are chosen by price and health, not by weight");
      const upstream = provider === undefined ? undefined : this.upstreamOf(provider, item);
      const id = upstream && this.plan.provider(upstream);
      if (typeof id === "object") item.report("left_out", id.problem);
      else if (id !== undefined) ids.push(id);
    }
    if (ids.length === 0) {
      balance.report("left_out", "names no provider that is known here");
      return;
    }
    const slug = this.plan.presetSlug(name);
    const provider = { only: [...new Set(ids)], ...(isByLatency ? { sort: "latency" } : {}) };
    this.plan.presets.push({ slug, name, config: { provider } });
    balance.report(
      "imported",
      `the router ${name} for ${endpoint} is @preset/${slug}: clients send models: [MODEL] with it, to the address without /router/${name}`,
    );
  }
}

/** Returns an address with the version that OpenAI's dialect has in its path. */
const withVersion = (address: string, vendor: string | undefined): string =>
  vendor === "anthropic" || vendor === "google" || /\/v\d\w*$/.test(address)
    ? address
    : `${address}/v1`;

/** Reports a limit on every key: here each key has its own. */
function reportLimits(node: SourceNode | undefined): void {
  const limit = node?.get("per-api-key");
  node?.get("store")?.whole();
  const capacity = limit?.get("capacity")?.number();
  const every = limit?.get("refill-frequency")?.text();
  if (limit === undefined || capacity === undefined) return;
  limit.report(
    "changed",
    `${capacity} requests in ${every ?? "a minute"} for each key: set rate_limit, a number a minute, on the keys`,
  );
}
