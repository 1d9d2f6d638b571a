import type { ConfiguredModel } from "../../inference/catalog/configured/configured-provider.ts";
import {
  credentialVariableOf,
  type ImportPlan,
  type Upstream,
  usdPerMillion,
  vendorAt,
} from "./import-plan.ts";
import { importLiteLlmKeys, resetOf } from "./litellm-keys.ts";
import type { SourceDocument, SourceNode } from "./source-document.ts";

/** LiteLLM's prefixes of models whose provider has another name here. */
const vendors: Readonly<Record<string, string>> = {
  azure_ai: "azure",
  bedrock: "amazon-bedrock",
  bedrock_converse: "amazon-bedrock",
  cohere_chat: "cohere",
  dashscope: "alibaba",
  fireworks_ai: "fireworks",
  gemini: "google",
  github: "github-models",
  hosted_vllm: "vllm",
  jina_ai: "jina",
  lm_studio: "lm-studio",
  moonshot: "moonshotai",
  nvidia_nim: "nvidia",
  ollama_chat: "ollama",
  together_ai: "together",
  vertex_ai: "google-vertex",
  ...Object.fromEntries(
    [
      ...["anthropic", "azure", "baseten", "cerebras", "cloudflare", "cohere", "databricks"],
      ...["deepinfra", "deepseek", "friendli", "groq", "huggingface", "minimax", "mistral"],
      ...["nebius", "novita", "ollama", "openai", "openrouter", "ovhcloud", "perplexity"],
      ...["siliconflow", "vllm", "voyage", "wandb", "xai", "zai"],
    ].map((id) => [id, id]),
  ),
};

const localVendors = new Set(["ollama", "vllm", "lm-studio"]);

const surfaces: Readonly<Record<string, ConfiguredModel["surface"]>> = {
  chat: "chat",
  completion: "chat",
  responses: "chat",
  embedding: "embeddings",
  rerank: "rerank",
  moderation: "moderations",
};

/** Parameters of a deployment that a preset can set. */
const presetParameters = [
  ...["temperature", "max_tokens", "top_p", "seed", "stop", "frequency_penalty"],
  ...["presence_penalty", "response_format"],
] as const;

const reasons: readonly (readonly [RegExp, string])[] = [
  [
    /^litellm_settings\.(success|failure)?_?callback/,
    "requests are traced to OpenTelemetry; see /docs/operate/observability",
  ],
  [
    /^litellm_settings\.(cache|cache_params)\b/,
    "there is no cache of answers; prompts are cached by the providers",
  ],
  [
    /^(litellm_settings|router_settings)\.(num_retries|allowed_fails|cooldown_time|retry_policy)/,
    "the next provider or model is tried at once, and failing ones come last",
  ],
  [
    /context_window_fallbacks|content_policy_fallbacks/,
    "models that are too small are left out before a request is sent; other refusals are the answer",
  ],
  [
    /^router_settings\.routing_strategy/,
    "providers are ordered by price and health; see /docs/guides/routing",
  ],
  [/redis_/, "several gateways share shared.url; see /docs/operate/several-gateways"],
  [
    /^general_settings\.(database_url|store_model_in_db)/,
    "the ledger is in a database of its own: storage.url",
  ],
  [/^general_settings\.master_key/, "the owner's account and management keys take its place"],
  [/^general_settings\.alert/, "budgets send mail and webhooks; see /docs/guides/budgets"],
  [/guardrails/, "there are no guardrails"],
  [/\.(rpm|tpm|max_parallel_requests)$/, "limits are set on keys, not on a provider's models"],
  [
    /weight$|\.order$/,
    "providers are ordered by price and health, or by provider.order of a request or preset",
  ],
  [/drop_params/, "what a provider cannot do is reported in X-Service-Translation-Loss"],
  [
    /^mcp_servers/,
    "the gateway serves tools of its own account; it does not relay other MCP servers",
  ],
];

const reasonFor = (path: string): string =>
  reasons.find(([pattern]) => pattern.test(path))?.[1] ?? "has no counterpart";

/** Converts `os.environ/NAME` to the configuration's form; undefined for other texts. */
const referenceOf = (text: string): string | undefined => {
  const name = /^os\.environ\/([A-Za-z_]\w*)$/.exec(text)?.[1];
  return name === undefined ? undefined : `\${${name}}`;
};

/** Reads LiteLLM's config.yaml, and its virtual keys where they were exported. */
export class LiteLlmImport {
  private readonly source: SourceDocument;
  private readonly plan: ImportPlan;
  /** Ids by the names of model groups. */
  private readonly groups = new Map<string, { id: string; parameters: object }>();
  private readonly deployments = new Map<string, SourceNode[]>();

  constructor(source: SourceDocument, plan: ImportPlan) {
    this.source = source;
    this.plan = plan;
  }

  /** Fills the plan. */
  run(keys: SourceDocument | undefined): void {
    const { root } = this.source;
    for (const entry of root.get("model_list")?.items() ?? []) this.addDeployment(entry);
    this.addAliases(root.get("router_settings")?.get("model_group_alias"));
    this.addPresets();
    this.addBudgets();
    this.source.finish(reasonFor);
    if (keys === undefined) return;
    importLiteLlmKeys(keys, this.plan, (name) => this.groups.get(name)?.id);
    keys.finish(() => "has no counterpart");
  }

  private addDeployment(entry: SourceNode): void {
    const name = entry.get("model_name")?.text();
    const parameters = entry.get("litellm_params");
    const model = parameters?.get("model")?.text();
    if (name === undefined || parameters === undefined || model === undefined)
      return entry.report("left_out", "names no model_name or litellm_params.model");
    if (model === "*")
      return entry.report(
        "changed",
        `${name}: every provider whose key is set serves the models of the catalog`,
      );
    const slash = model.indexOf("/");
    const prefix = slash < 0 ? undefined : model.slice(0, slash);
    const vendor = prefix === undefined ? this.vendorOfBareName(model) : vendors[prefix];
    const wireName = vendor === undefined && prefix === undefined ? model : model.slice(slash + 1);
    const upstream = this.upstreamOf(parameters, { vendor, prefix, name });
    if (upstream === undefined) return;
    if (wireName.includes("*") || name.includes("*"))
      return this.addWildcard(entry, upstream, name);
    const id = this.plan.modelId(name, upstream.vendor ?? upstream.name ?? "litellm");
    this.addModel(entry, { name, id, upstream, wireName });
    if (!this.groups.has(name)) {
      const given = presetParameters.flatMap((key) => {
        const part = parameters.get(key);
        return part === undefined ? [] : [[key, part.whole()] as const];
      });
      this.groups.set(name, { id, parameters: Object.fromEntries(given) });
    }
    this.deployments.set(name, [...(this.deployments.get(name) ?? []), entry]);
    this.plan.names.set(name, id);
  }

  private vendorOfBareName(model: string): string | undefined {
    const [owner] = this.plan.modelId(model, "openai").split("/");
    return owner === "anthropic" || owner === "openai" ? owner : "openai";
  }

  private addModel(
    entry: SourceNode,
    {
      name,
      id,
      upstream,
      wireName,
    }: { name: string; id: string; upstream: Upstream; wireName: string },
  ): void {
    const info = entry.get("model_info");
    const base = info?.get("base_model")?.text();
    const price = this.plan.addModel(upstream, {
      id,
      upstreamModel: wireName,
      pricedAs: base?.slice(base.indexOf("/") + 1),
      settings: this.modelSettings(entry),
    });
    const shown = id === name ? id : `${name} is ${id}`;
    if (price === "none" && !localVendors.has(upstream.vendor ?? ""))
      entry.report("changed", `${shown}; no price is known, so it is free: write its pricing`);
    else entry.report("imported", shown);
  }

  private modelSettings(entry: SourceNode): Partial<ConfiguredModel> {
    const info = entry.get("model_info");
    const parameters = entry.get("litellm_params");
    const cost = (key: string): number | undefined =>
      parameters?.get(key)?.number() ?? info?.get(key)?.number();
    const [prompt, completion] = [cost("input_cost_per_token"), cost("output_cost_per_token")];
    const cacheRead = cost("cache_read_input_token_cost");
    const settings: Partial<ConfiguredModel> = {};
    const mode = info?.get("mode");
    const surface = surfaces[mode?.text() ?? "chat"];
    if (surface === undefined)
      mode?.report("changed", "is no kind of model here; it is served as chat");
    else if (surface !== "chat") settings.surface = surface;
    const context = info?.get("max_input_tokens")?.number();
    const output = info?.get("max_output_tokens")?.number() ?? info?.get("max_tokens")?.number();
    if (context !== undefined) settings.context_length = context;
    if (output !== undefined) settings.max_completion_tokens = output;
    if (prompt !== undefined || completion !== undefined)
      settings.pricing = {
        prompt: usdPerMillion(prompt ?? 0),
        completion: usdPerMillion(completion ?? 0),
        ...(cacheRead === undefined ? {} : { cache_read: usdPerMillion(cacheRead) }),
      };
    const capabilities = [
      ...(info?.get("supports_function_calling")?.isTrue() ? ["function-calling"] : []),
      ...(info?.get("supports_vision")?.isTrue() ? ["vision"] : []),
    ];
    if (capabilities.length > 0) settings.capabilities = ["chat", ...capabilities];
    info?.get("id")?.text();
    return settings;
  }

  private upstreamOf(
    parameters: SourceNode,
    {
      vendor: prefixed,
      prefix,
      name,
    }: { vendor: string | undefined; prefix: string | undefined; name: string },
  ): Upstream | undefined {
    const address = parameters.get("api_base") ?? parameters.get("base_url");
    const written = address?.text();
    // openai/ with an address is how LiteLLM names any server that speaks OpenAI's dialect.
    const isOwnServer = written !== undefined && (prefixed === "openai" || prefixed === undefined);
    const vendor = isOwnServer ? vendorAt(written) : prefixed;
    if (vendor === undefined && !isOwnServer) {
      parameters
        .get("model")
        ?.report("left_out", `there is no provider ${prefix ?? ""} here, and no api_base`);
      return undefined;
    }
    const headers = (parameters.get("extra_headers") ?? parameters.get("headers"))?.whole();
    const timeouts = this.timeoutsOf(parameters);
    this.addVendorVariables(parameters, vendor);
    return {
      vendor,
      ...(vendor === undefined ? { name: hostName(written ?? "") ?? name } : {}),
      baseUrl: written === undefined ? undefined : this.addressOf(address, written, vendor),
      apiKey: this.keyOf(parameters.get("api_key"), vendor ?? name),
      ...(headers === undefined ? {} : { headers: headers as Record<string, string> }),
      ...(timeouts === undefined ? {} : { timeouts }),
    };
  }

  private keyOf(node: SourceNode | undefined, owner: string): string | undefined {
    const written = node?.text();
    if (node === undefined || written === undefined) return undefined;
    const reference = referenceOf(written);
    if (reference !== undefined) return reference;
    node.report("changed", "the key goes to switchyard.env, not to the configuration");
    return this.plan.secret(credentialVariableOf(owner), written);
  }

  private addressOf(
    node: SourceNode | undefined,
    written: string,
    vendor: string | undefined,
  ): string | undefined {
    const reference = referenceOf(written);
    const suffix =
      vendor === "azure"
        ? "/openai/v1"
        : localVendors.has(vendor ?? "") && !/\/v1\/?$/.test(written)
          ? "/v1"
          : "";
    if (reference === undefined) {
      const plain = written.replace(/[?#].*$/, "").replace(/\/+$/, "");
      return plain.endsWith(suffix) ? plain : `${plain}${suffix}`;
    }
    const variable = reference.slice(2, -1);
    node?.report(
      "changed",
      `set ${variable} before the gateway starts, without a slash at its end`,
    );
    return `\${${variable}:-http://${variable.toLowerCase().replaceAll("_", "-")}.invalid}${suffix}`;
  }

  private timeoutsOf(parameters: SourceNode): Upstream["timeouts"] {
    const ms = (key: string): number | undefined => {
      const seconds = parameters.get(key)?.number();
      return seconds === undefined ? undefined : Math.max(1, Math.round(seconds * 1_000));
    };
    const [total, first] = [ms("timeout"), ms("stream_timeout")];
    if (total === undefined && first === undefined) return undefined;
    return {
      ...(total === undefined ? {} : { total }),
      ...(first === undefined ? {} : { first_token: first }),
    };
  }

  /** Adds the variables in which providers read cloud accounts. */
  private addVendorVariables(parameters: SourceNode, vendor: string | undefined): void {
    const variables: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      "google-vertex": {
        vertex_project: "GOOGLE_VERTEX_PROJECT",
        vertex_location: "GOOGLE_VERTEX_LOCATION",
        vertex_credentials: "GOOGLE_APPLICATION_CREDENTIALS",
      },
      "amazon-bedrock": {
        aws_region_name: "AWS_REGION",
        aws_access_key_id: "AWS_ACCESS_KEY_ID",
        aws_secret_access_key: "AWS_SECRET_ACCESS_KEY",
      },
    };
    for (const [key, variable] of Object.entries(variables[vendor ?? ""] ?? {})) {
      const node = parameters.get(key);
      const written = node?.text();
      if (node === undefined || written === undefined) continue;
      const reference = referenceOf(written)?.slice(2, -1);
      if (reference === variable) continue;
      if (reference === undefined) this.plan.secret(variable, written);
      node.report(
        "changed",
        `is read from ${variable}${reference === undefined ? "" : `: give it what ${reference} has`}`,
      );
    }
  }

  private addWildcard(entry: SourceNode, upstream: Upstream, name: string): void {
    this.plan.provider(upstream);
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
    for (const section of ["litellm_settings", "router_settings"]) {
      const settings = this.source.root.get(section);
      const lists = settings?.get("fallbacks")?.items() ?? [];
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
      const all = settings?.get("default_fallbacks");
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
    const { root } = this.source;
    const settings = root.get("litellm_settings");
    const budget = settings?.get("max_budget");
    const limit = budget?.number();
    if (budget !== undefined && limit !== undefined && limit > 0) {
      const reset = resetOf(settings?.get("budget_duration"));
      this.plan.budgets.push({
        name: "All requests",
        scope: "workspace",
        action: "block",
        limit,
        period: reset,
      });
      budget.report("imported", `a ${reset} budget of the workspace that blocks at $${limit}`);
    }
    const providers = root.get("router_settings")?.get("provider_budget_config");
    for (const [prefix, node] of providers?.entries() ?? []) {
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

function hostName(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const { hostname, port } = new URL(address);
  return /^[\d.]+$|^localhost$|^\[/.test(hostname) ? `server-${port || "80"}` : hostname;
}
