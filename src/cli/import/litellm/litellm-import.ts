import { dirname, resolve } from "node:path";
import type { ConfiguredModel } from "../../../inference/catalog/configured/configured-provider.ts";
import { type ImportPlan, type Upstream, usdPerMillion, withoutPrice } from "../import-plan.ts";
import { importLiteLlmKeys, resetOf } from "./litellm-keys.ts";
import { LiteLlmUpstreams } from "./litellm-upstreams.ts";
import { localVendors, reasonFor, vendors } from "./litellm-words.ts";
import { kindOfMode, kindOfName, type ModelKind } from "../model-kind.ts";
import { presetParametersOf } from "../preset-parameters.ts";
import { SourceDocument } from "../source-document.ts";
import type { SourceNode } from "../source-node.ts";

/** Reads LiteLLM's config.yaml, and its virtual keys where they were exported. */
export class LiteLlmImport {
  /** The file itself, and those that it includes. */
  readonly sources: SourceDocument[] = [];
  private readonly upstreams: LiteLlmUpstreams;
  /** Ids by the names of model groups. */
  private readonly groups = new Map<string, { id: string; parameters: object }>();
  private readonly deployments = new Map<string, SourceNode[]>();

  constructor(
    source: SourceDocument,
    private readonly plan: ImportPlan,
  ) {
    this.upstreams = new LiteLlmUpstreams(plan);
    this.addSource(source);
  }

  /** Adds a file and those that it includes, by their path beside it. */
  private addSource(source: SourceDocument): void {
    this.sources.push(source);
    for (const item of source.root.get("include")?.items() ?? []) {
      const file = resolve(dirname(source.file), item.text() ?? "");
      if (this.sources.some((other) => resolve(other.file) === file)) continue;
      try {
        this.addSource(SourceDocument.read(file));
      } catch (error) {
        item.report("left_out", error instanceof Error ? error.message : String(error));
      }
    }
  }

  /** Fills the plan. */
  run(keys: SourceDocument | undefined): void {
    for (const entry of this.all("model_list").flatMap((list) => list.items()))
      this.addDeployment(entry);
    for (const settings of this.all("router_settings"))
      this.addAliases(settings.get("model_group_alias"));
    this.addPresets();
    this.addBudgets();
    for (const source of this.sources) source.finish(reasonFor);
    if (keys === undefined) return;
    importLiteLlmKeys(keys, this.plan, (name) => this.groups.get(name)?.id);
    keys.finish(() => "has no counterpart");
  }

  /** Returns a section as each of the files has it. */
  private all(section: string): SourceNode[] {
    return this.sources.flatMap(({ root }) => root.get(section) ?? []);
  }

  private addDeployment(entry: SourceNode): void {
    const name = entry.get("model_name")?.text();
    const parameters = entry.get("litellm_params");
    const model = parameters?.get("model")?.text();
    if (name === undefined || parameters === undefined || model === undefined)
      return entry.report("left_out", "has no text as model_name and litellm_params.model");
    if (model === "*")
      return entry.report(
        "changed",
        `${name}: every provider whose key is set serves the models of the catalog`,
      );
    if (model.startsWith("os.environ/"))
      return entry.report(
        "left_out",
        `${name}: the model is named by a variable: write its name in the file, then import again`,
      );
    const { prefix, vendor, wireName } = this.modelOf(model, parameters);
    const isWildcard = wireName.includes("*") || name.includes("*");
    const kind = isWildcard ? "chat" : this.kindOf(entry, wireName, vendor);
    if (kind === "none")
      return entry.report("left_out", `${name}: the gateway has no surface for what it does`);
    const upstream = this.upstreams.upstreamOf(parameters, { vendor, prefix, name });
    if (upstream === undefined) return;
    if (isWildcard) return this.addWildcard(entry, upstream, name);
    // Entries of one name are one model, whichever vendors serve it.
    const id =
      this.groups.get(name)?.id ??
      this.plan.modelId(name, upstream.vendor ?? upstream.name ?? "litellm");
    if (!this.addModel(entry, { name, id, upstream, wireName, kind })) return;
    if (!this.groups.has(name))
      this.groups.set(name, { id, parameters: presetParametersOf(parameters) });
    this.deployments.set(name, [...(this.deployments.get(name) ?? []), entry]);
    this.plan.names.set(name, id);
  }

  /** Returns what `litellm_params.model` names: a provider, and a model there. */
  private modelOf(
    model: string,
    parameters: SourceNode,
  ): { prefix: string | undefined; vendor: string | undefined; wireName: string } {
    const slash = model.indexOf("/");
    const prefix = slash < 0 ? undefined : model.slice(0, slash);
    const chosen = parameters.get("custom_llm_provider")?.text();
    const known = vendors[chosen ?? prefix ?? ""];
    const isVertexClaude = known === "google-vertex" && model.includes("claude");
    const vendor = isVertexClaude
      ? "google-vertex-anthropic"
      : (known ?? (prefix === undefined ? this.vendorOfBareName(model, parameters) : undefined));
    const isNamed = prefix !== undefined && (vendors[prefix] !== undefined || chosen === undefined);
    const wireName = isNamed ? model.slice(slash + 1) : model;
    // The gateway chooses by itself between chat completions and the Responses API.
    return { prefix, vendor, wireName: wireName.replace(/^responses\//, "") };
  }

  private vendorOfBareName(model: string, parameters: SourceNode): string | undefined {
    if (parameters.get("vertex_project") !== undefined)
      return model.includes("claude") ? "google-vertex-anthropic" : "google-vertex";
    if (parameters.get("aws_region_name") !== undefined) return "amazon-bedrock";
    const [owner] = this.plan.modelId(model, "openai").split("/");
    return owner === "anthropic" || owner === "openai" ? owner : "openai";
  }

  /** Returns what a model does: as the entry says, as the catalog knows it, or by its name. */
  private kindOf(entry: SourceNode, wireName: string, vendor: string | undefined): ModelKind {
    const info = entry.get("model_info");
    const mode = info?.get("mode")?.text();
    if (mode !== undefined) return kindOfMode(mode);
    const base = info?.get("base_model")?.text();
    const name = base?.slice(base.indexOf("/") + 1) ?? wireName;
    const known = vendor === undefined ? undefined : this.plan.surfaceOf(name, vendor);
    return known ?? kindOfName(name) ?? "chat";
  }

  /** Adds a deployment's model; returns whether the gateway can use it. */
  private addModel(
    entry: SourceNode,
    {
      name,
      id,
      upstream,
      wireName,
      kind,
    }: {
      name: string;
      id: string;
      upstream: Upstream;
      wireName: string;
      kind: Exclude<ModelKind, "none">;
    },
  ): boolean {
    const base = entry.get("model_info")?.get("base_model")?.text();
    const added = this.plan.addModel(upstream, {
      id,
      upstreamModel: wireName,
      pricedAs: base?.slice(base.indexOf("/") + 1),
      settings: { ...this.modelSettings(entry), ...(kind === "chat" ? {} : { surface: kind }) },
    });
    if (typeof added === "object") {
      entry.report("left_out", `${name}: ${added.problem}`);
      return false;
    }
    const shown = id === name ? id : `${name} is ${id}`;
    const unpriced = localVendors.has(upstream.vendor ?? "") ? undefined : withoutPrice(added);
    if (unpriced === undefined) entry.report("imported", shown);
    else entry.report("changed", `${shown}; ${unpriced}`);
    return true;
  }

  private modelSettings(entry: SourceNode): Partial<ConfiguredModel> {
    const info = entry.get("model_info");
    const parameters = entry.get("litellm_params");
    const cost = (key: string): number | undefined =>
      parameters?.get(key)?.number() ?? info?.get(key)?.number();
    const [prompt, completion] = [cost("input_cost_per_token"), cost("output_cost_per_token")];
    const cacheRead = cost("cache_read_input_token_cost");
    const cacheWrite = cost("cache_creation_input_token_cost");
    const settings: Partial<ConfiguredModel> = {};
    const context = info?.get("max_input_tokens")?.number();
    const output = info?.get("max_output_tokens")?.number() ?? info?.get("max_tokens")?.number();
    if (context !== undefined) settings.context_length = context;
    if (output !== undefined) settings.max_completion_tokens = output;
    if (prompt !== undefined || completion !== undefined)
      settings.pricing = {
        prompt: usdPerMillion(prompt ?? 0),
        completion: usdPerMillion(completion ?? 0),
        ...(cacheRead === undefined ? {} : { cache_read: usdPerMillion(cacheRead) }),
        ...(cacheWrite === undefined ? {} : { cache_write: usdPerMillion(cacheWrite) }),
      };
    const capabilities = [
      ...(info?.get("supports_function_calling")?.isTrue() ? ["function-calling"] : []),
      ...(info?.get("supports_vision")?.isTrue() ? ["vision"] : []),
    ];
    if (capabilities.length > 0) settings.capabilities = ["chat", ...capabilities];
    info?.get("id")?.text();
    return settings;
  }

  private addWildcard(entry: SourceNode, upstream: Upstream, name: string): void {
    const added = this.plan.provider(upstream);
    if (typeof added === "object") return entry.report("left_out", `${name}: ${added.problem}`);
    entry.report(
      "changed",
      `${name}: every model of the catalog is served; newer ones with catalog.unknown_models`,
    );
  }

  private addAliases(aliases: SourceNode | undefined): void {
    for (const [alias, node] of aliases?.entries() ?? []) {
      const target = node.text() ?? node.get("model")?.text();
      node.get("hidden")?.report("left_out", "every model is listed");
      const group = target === undefined ? undefined : this.groups.get(target);
      if (target === undefined || group === undefined) {
        node.report("left_out", "names no single model of model_list");
        continue;
      }
      const id = this.plan.modelId(alias, "alias");
      for (const entry of this.plan.providers) {
        const model = entry.models?.find((each) => each.id === group.id);
        if (model === undefined || entry.models?.some((each) => each.id === id)) continue;
        const wireName = model.upstream_model ?? model.id.slice(model.id.indexOf("/") + 1);
        // The alias may be the name of another model, whose price is not what is paid.
        const pricing = model.pricing ?? this.plan.catalogPricing(group.id, entry.like ?? entry.id);
        entry.models = [
          ...(entry.models ?? []),
          { ...model, id, upstream_model: wireName, ...(pricing !== undefined && { pricing }) },
        ];
      }
      this.groups.set(alias, { id, parameters: {} });
      this.plan.names.set(alias, id);
      node.report("imported", `${alias} is ${id}, served as ${target}`);
    }
  }

  /** Turns fallbacks and parameters of models into presets, which clients request by name. */
  private addPresets(): void {
    const fallbacks = new Map<string, string[]>();
    for (const settings of ["litellm_settings", "router_settings"].flatMap((name) =>
      this.all(name),
    )) {
      const lists = settings.get("fallbacks")?.items() ?? [];
      for (const [name, list] of lists.flatMap((item) => item.entries())) {
        const ids = list.texts().flatMap((target) => this.groups.get(target)?.id ?? []);
        if (!this.groups.has(name) || ids.length === 0)
          list.report("left_out", "names no model of model_list");
        else {
          fallbacks.set(name, ids);
          list.report(
            "changed",
            `clients ask for @preset/${this.plan.presetSlug(name)} to fall back`,
          );
        }
      }
      const all = settings.get("default_fallbacks");
      const everywhere = all?.texts().flatMap((target) => this.groups.get(target)?.id ?? []) ?? [];
      if (all === undefined || everywhere.length === 0) continue;
      for (const [name, { id }] of this.groups)
        if (!fallbacks.has(name))
          fallbacks.set(
            name,
            everywhere.filter((each) => each !== id),
          );
      all.report("changed", "each model has a preset of its name that falls back");
    }
    for (const [name, { id, parameters }] of this.groups) {
      const models = fallbacks.get(name) ?? [];
      if (models.length === 0 && Object.keys(parameters).length === 0) continue;
      const slug = this.plan.presetSlug(name);
      const config = { model: id, ...(models.length === 0 ? {} : { models }), ...parameters };
      this.plan.presets.push({ slug, name, config });
      if (Object.keys(parameters).length > 0)
        this.deployments
          .get(name)?.[0]
          ?.get("litellm_params")
          ?.report("changed", `${Object.keys(parameters).join(", ")}: set by @preset/${slug}`);
    }
  }

  private addBudgets(): void {
    for (const settings of this.all("litellm_settings")) {
      const budget = settings.get("max_budget");
      const limit = budget?.number();
      if (budget === undefined || limit === undefined || limit <= 0) continue;
      const period = resetOf(settings.get("budget_duration"));
      const name = "All requests";
      this.plan.budgets.push({ name, scope: "workspace", action: "block", limit, period });
      budget.report("imported", `a ${period} budget of the workspace that blocks at $${limit}`);
    }
    const providers = this.all("router_settings").flatMap(
      (settings) => settings.get("provider_budget_config")?.entries() ?? [],
    );
    for (const [prefix, node] of providers) {
      const subject = vendors[prefix];
      const amount = (node.get("budget_limit") ?? node.get("max_budget"))?.number();
      if (subject === undefined || amount === undefined) continue;
      const period = resetOf(node.get("time_period") ?? node.get("budget_duration"));
      this.plan.budgets.push({
        name: `Provider ${subject}`,
        scope: "provider",
        subject,
        action: "block",
        limit: amount,
        period,
      });
      node.report(
        "imported",
        `a ${period} budget of the provider ${subject} that blocks at $${amount}`,
      );
    }
  }
}
