import type { ConfiguredProvider } from "../../../inference/catalog/configured/configured-provider.ts";
import { type ImportPlan, withoutPrice } from "../import-plan.ts";
import { kindOfName } from "../model-kind.ts";
import type { SourceDocument } from "../source-document.ts";
import type { SourceNode } from "../source-node.ts";
import { BifrostGovernance } from "./bifrost-governance.ts";
import { importRules } from "./bifrost-rules.ts";
import { BifrostUpstreams } from "./bifrost-upstreams.ts";

const reasons: readonly (readonly [RegExp, string])[] = [
  [/^mcp\b/, "MCP servers are registered in a workspace; see /docs/guides/tools"],
  [/^(plugins|vector_store)\b/, "there are no plugins and no cache of answers"],
  [/^(config_store|logs_store|cluster_config)\b/, "storage is set with storage.url and shared.url"],
  [
    /^(client|server|websocket|framework|audit_logs)\b/,
    "is part of the gateway's own configuration",
  ],
  [/^encryption_key\b/, "the gateway has a key of its own: SWITCHYARD_ENCRYPTION_KEY"],
  [/auth_config\b/, "people sign in to the dashboard; the owner is claimed at the first start"],
  [/^(guardrails|guardrails_config)\b/, "there are no guardrails"],
  [
    /^governance\.(teams|business_units|roles|access_profiles)\b/,
    "keys belong to workspaces; see /docs/guides/team-keys",
  ],
  [/^governance\.customers\b/, "customers are created over the API; see /docs/guides/customers"],
  [
    /^governance\.(model_configs|pricing_overrides)\b/,
    "prices stand at the models of a provider, limits on keys",
  ],
  [/weight$/, "providers are ordered by price and health, or by provider.order"],
  [/retries|retry_backoff/, "the next provider or model is tried at once"],
  [/concurrency_and_buffer_size/, "requests are not queued; a busy provider is passed over"],
  [/proxy_config/, "proxies are set with HTTPS_PROXY, HTTP_PROXY and NO_PROXY"],
  [/use_for_batch_api|send_back_raw|store_raw/, "has no counterpart, and needs none"],
];

/**
 * Reads Bifrost's config.json: providers with their keys, virtual keys with their budgets and
 * limits, and routing rules for one model.
 */
export class BifrostImport {
  private readonly upstreams: BifrostUpstreams;

  constructor(private readonly plan: ImportPlan) {
    this.upstreams = new BifrostUpstreams(plan);
  }

  /** Fills the plan from all files, starting with the providers. */
  run(sources: readonly SourceDocument[]): void {
    const idOf = (provider: string, model: string): string =>
      this.plan.modelId(model, this.upstreams.vendorOf(provider) ?? provider);
    for (const { root } of sources) {
      for (const fact of ["$schema", "version", "env_label"]) root.get(fact)?.whole();
      for (const [name, part] of root.get("providers")?.entries() ?? [])
        this.addProvider(name, part);
    }
    for (const { root } of sources) {
      const governance = root.get("governance");
      if (governance === undefined) continue;
      new BifrostGovernance(this.plan, { governance, idOf, upstreams: this.upstreams }).run();
      importRules(governance.get("routing_rules"), { plan: this.plan, idOf });
    }
    for (const source of sources)
      source.finish(
        (path) => reasons.find(([pattern]) => pattern.test(path))?.[1] ?? "has no counterpart",
      );
  }

  private addProvider(name: string, part: SourceNode): void {
    const keys = part.get("keys")?.items() ?? [];
    if (keys.length === 0) this.addKey(name, { part, key: undefined });
    for (const key of keys) this.addKey(name, { part, key });
  }

  private addKey(
    name: string,
    { part, key }: { part: SourceNode; key: SourceNode | undefined },
  ): void {
    const upstream = this.upstreams.upstreamOf(name, { part, key });
    if (upstream === undefined) return;
    for (const fact of ["id", "name"]) key?.get(fact)?.whole();
    const models = wireNamesOf(key);
    if (models.length === 0) {
      const id = this.plan.provider(upstream);
      const node = key ?? part;
      if (typeof id === "object") node.report("left_out", id.problem);
      else node.report("imported", `is the provider ${id}, with the models that the catalog knows`);
    }
    for (const { model, wireName, node } of models) {
      const vendor = upstream.vendor ?? upstream.name ?? name;
      const id = this.plan.modelId(model, vendor);
      const kind = kindOfName(wireName);
      if (kind === "none") {
        node.report(
          "left_out",
          `${model}: pictures and sound are served with the catalog's models`,
        );
        continue;
      }
      const surface = this.plan.surfaceOf(wireName, vendor) ?? kind ?? "chat";
      const settings: Partial<NonNullable<ConfiguredProvider["models"]>[number]> =
        surface === "chat" ? {} : { surface };
      const added = this.plan.addModel(upstream, { id, upstreamModel: wireName, settings });
      if (typeof added === "object") {
        node.report("left_out", `${model}: ${added.problem}`);
        continue;
      }
      const unpriced = withoutPrice(added);
      if (unpriced !== undefined) node.report("changed", `${id}: ${unpriced}`);
      else if (`${name}/${model}` !== id) node.report("changed", `clients write ${id}`);
      else node.report("imported", `is ${id}`);
    }
  }
}

/** A model of a key, with its name at the provider. */
interface WireName {
  model: string;
  wireName: string;
  node: SourceNode;
}

/**
 * Returns the models of a key with the names by which it is asked for them: its list, and its
 * deployments or aliases. None where it may ask every model.
 */
function wireNamesOf(key: SourceNode | undefined): WireName[] {
  const found = new Map<string, WireName>();
  const cloud = ["azure_key_config", "bedrock_key_config", "vertex_key_config"].map((config) =>
    key?.get(config)?.get("deployments"),
  );
  for (const item of key?.get("models")?.items() ?? []) {
    const model = item.text();
    if (model !== undefined && model !== "*")
      found.set(model, { model, wireName: model, node: item });
  }
  for (const names of [...cloud, key?.get("aliases")])
    for (const [model, part] of names?.entries() ?? []) {
      const wireName = part.text() ?? part.get("model_id")?.text();
      if (wireName !== undefined) found.set(model, { model, wireName, node: part });
    }
  const own = key?.get("vllm_key_config")?.get("model_name");
  const served = own?.text();
  if (own !== undefined && served !== undefined)
    found.set(served, { model: served, wireName: served, node: own });
  return [...found.values()];
}
