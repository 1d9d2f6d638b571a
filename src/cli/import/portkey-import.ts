import {
  credentialVariableOf,
  type ImportPlan,
  type NewRecord,
  type Upstream,
  vendorAt,
  withoutPrice,
} from "./import-plan.ts";
import { expiryOf, resetOf } from "./litellm/litellm-keys.ts";
import { presetParametersOf } from "./preset-parameters.ts";
import { hostName, usableAddress } from "./server-address.ts";
import type { SourceDocument } from "./source-document.ts";
import type { SourceNode } from "./source-node.ts";

/** Portkey's names of providers that have another name here. */
const vendors: Readonly<Record<string, string>> = {
  "azure-openai": "azure",
  "azure-ai": "azure",
  bedrock: "amazon-bedrock",
  dashscope: "alibaba",
  "fireworks-ai": "fireworks",
  github: "github-models",
  "mistral-ai": "mistral",
  moonshot: "moonshotai",
  "perplexity-ai": "perplexity",
  "together-ai": "together",
  "vertex-ai": "google-vertex",
  "x-ai": "xai",
  zhipu: "zai",
  ...Object.fromEntries(
    [
      ...["anthropic", "cerebras", "cohere", "databricks", "deepinfra", "deepseek", "google"],
      ...["groq", "huggingface", "jina", "lm-studio", "nebius", "ollama", "openai"],
      ...["openrouter", "voyage"],
    ].map((id) => [id, id]),
  ),
};

const reasons: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)cache$/, "there is no cache of answers; prompts are cached by the providers"],
  [/(^|\.)retry$/, "the next provider or model is tried at once"],
  [/guardrails|before_request_hooks|after_request_hooks/, "there are no guardrails"],
  [/weight$/, "providers are ordered by price and health, or by provider.order"],
  [/on_status_codes$/, "429, 5xx and timeouts are tried elsewhere; other refusals are the answer"],
  [/conditions|\.default$/, "requests are not routed by their metadata; clients name a preset"],
  [/scopes$/, "every key can ask models; allowed_endpoints narrows it"],
  [/alert_emails|alert_threshold$/, "budgets send alerts; see /docs/guides/budgets"],
  [/rate_limits/, "limits are set on keys, in requests and tokens a minute"],
  [/defaults/, "clients name a preset; see /docs/guides/presets"],
];

/** Members of records that a report does not list. */
const facts = [
  ...["id", "object", "created_at", "last_updated_at", "updated_at", "organisation_id"],
  ...["workspace_id", "user_id", "creation_mode", "type", "key", "reset_usage", "owner_id"],
  ...["updated_by", "is_default", "version_id", "description", "note", "masked_api_key"],
];

/** Reads configs, providers (virtual keys) and API keys of Portkey, as its API returns them. */
export class PortkeyImport {
  /** Vendors by the slugs of virtual keys. */
  private readonly slugs = new Map<string, Upstream>();

  constructor(private readonly plan: ImportPlan) {}

  /** Fills the plan from all files, starting with records that others refer to. */
  run(sources: readonly SourceDocument[]): void {
    const records = sources.flatMap(recordsOf);
    for (const record of records) for (const fact of facts) record.get(fact)?.whole();
    for (const record of records.filter(isVirtualKey)) this.addVirtualKey(record);
    for (const record of records.filter(isConfig)) this.addConfig(record);
    for (const record of records.filter(isApiKey)) this.addKey(record);
    for (const source of sources)
      source.finish(
        (path) => reasons.find(([each]) => each.test(path))?.[1] ?? "has no counterpart",
      );
  }

  private addVirtualKey(record: SourceNode): void {
    const slug = record.get("slug")?.text() ?? record.get("name")?.text() ?? "provider";
    const named = (record.get("ai_provider_name") ?? record.get("provider"))?.text() ?? slug;
    const vendor = vendorOf(named) ?? vendorOf(slug);
    record.get("status")?.text();
    if (vendor === undefined)
      return record.report("left_out", `names no provider that is known here: ${named}`);
    const entry = { vendor, apiKey: `\${${credentialVariableOf(vendor)}}` };
    this.slugs.set(slug, entry);
    const id = this.plan.provider(entry);
    if (typeof id === "object") return record.report("left_out", `${slug}: ${id.problem}`);
    const limits = record.get("usage_limits");
    const limit = limits?.get("credit_limit")?.number();
    if (limit !== undefined) {
      const period = resetOf(limits?.get("periodic_reset"));
      this.plan.budgets.push({
        name: `Provider ${slug}`,
        scope: "provider",
        subject: id,
        action: "block",
        limit,
        period,
      });
    }
    record.report(
      "changed",
      `${slug} is the provider ${id}: its key is not exported, set ${credentialVariableOf(vendor)}`,
    );
  }

  private addConfig(record: SourceNode): void {
    const inner = record.get("config") ?? record;
    const name = record.get("name")?.text() ?? record.get("slug")?.text() ?? "portkey";
    record.get("slug")?.text();
    record.get("status")?.text();
    const targets = this.targetsOf(inner);
    const config = this.presetOf(targets);
    const slug = this.plan.presetSlug(name);
    if (Object.keys(config).length === 0)
      return inner.report("left_out", "names no model and no provider that is known here");
    this.plan.presets.push({ slug, name, config });
    inner.report("imported", `the config ${name} is @preset/${slug}`);
  }

  /** Returns targets in the order in which they are tried; nested strategies are flattened. */
  private targetsOf(node: SourceNode, inherited: readonly SourceNode[] = []): Target[] {
    const own = node.get("override_params");
    const parameters = own === undefined ? inherited : [...inherited, own];
    const strategy = node.get("strategy");
    const mode = strategy?.get("mode");
    const nested = node.get("targets")?.items() ?? [];
    if (nested.length === 0) return [{ node, parameters }];
    const written = mode?.text();
    if (written === "loadbalance")
      mode?.report("changed", "providers are chosen by price and health, not by weight");
    if (written === "conditional")
      mode?.report("changed", "targets are tried in order, without their conditions");
    for (const target of nested) target.get("name")?.text();
    return nested.flatMap((target) => this.targetsOf(target, parameters));
  }

  private presetOf(targets: readonly Target[]): NewRecord {
    const models: string[] = [];
    const providers: string[] = [];
    let parameters: Record<string, unknown> | undefined;
    for (const target of targets) {
      const isUsed = this.addTarget(target, { models, providers });
      if (!isUsed && targets.length > 1) continue;
      const given: Record<string, unknown> = Object.fromEntries(
        target.parameters.flatMap((part) => Object.entries(presetParametersOf(part))),
      );
      parameters ??= given;
      const differing = Object.keys(given).filter(
        (key) => JSON.stringify(given[key]) !== JSON.stringify(parameters?.[key]),
      );
      if (differing.length > 0)
        target.parameters
          .at(-1)
          ?.report(
            "changed",
            `${differing.join(", ")}: a preset has one value for all its models, that of the first target`,
          );
    }
    const [model, ...others] = models;
    return {
      ...(model === undefined ? {} : { model }),
      ...(others.length === 0 ? {} : { models: others }),
      ...(providers.length === 0 ? {} : { provider: { order: [...new Set(providers)] } }),
      ...parameters,
    };
  }

  /** Adds a target's model, or its provider where it names none; returns whether it could. */
  private addTarget(
    { node, parameters }: Target,
    { models, providers }: { models: string[]; providers: string[] },
  ): boolean {
    const written = parameters.findLast((given) => given.get("model") !== undefined)?.get("model");
    const [, slug, wireName] = /^@([^/]+)\/(.+)$/.exec(written?.text() ?? "") ?? [];
    if (!namesProvider(node) && slug === undefined && written === undefined) return false;
    const upstream = this.upstreamOf(node, slug);
    if (upstream === undefined) return false;
    const model = wireName ?? written?.text();
    if (model === undefined) {
      const id = this.plan.provider(upstream);
      if (typeof id === "string") providers.push(id);
      else node.report("left_out", id.problem);
      return typeof id === "string";
    }
    const id = this.plan.modelId(model, upstream.vendor ?? upstream.name ?? "portkey");
    const added = this.plan.addModel(upstream, { id, upstreamModel: model, settings: {} });
    if (typeof added === "object") {
      node.report("left_out", `${model}: ${added.problem}`);
      return false;
    }
    if (!models.includes(id)) models.push(id);
    const unpriced = withoutPrice(added);
    if (unpriced !== undefined) written?.report("changed", `${id}: ${unpriced}`);
    return true;
  }

  private upstreamOf(target: SourceNode, modelSlug: string | undefined): Upstream | undefined {
    const provider = target.get("provider");
    const written = provider?.text();
    const virtualKey = target.get("virtual_key")?.text();
    const slug =
      virtualKey ?? modelSlug ?? (written?.startsWith("@") ? written.slice(1) : undefined);
    const known = slug === undefined ? undefined : this.slugs.get(slug);
    if (known !== undefined) return known;
    const address = target.get("custom_host");
    const given = address?.text()?.replace(/\/+$/, "");
    const host = given === undefined ? undefined : usableAddress(address, given);
    const named = written?.startsWith("@") ? undefined : written;
    const vendor =
      host === undefined ? (vendorOf(named ?? "") ?? vendorOf(slug ?? "")) : vendorAt(host);
    if (vendor === undefined && host === undefined) {
      target.report("left_out", `names no provider that is known here: ${named ?? slug ?? "none"}`);
      return undefined;
    }
    const timeout = target.get("request_timeout")?.number();
    const owner = vendor ?? hostName(host ?? "") ?? named ?? "server";
    return {
      vendor,
      ...(vendor === undefined ? { name: named ?? owner } : {}),
      ...(host === undefined ? {} : { baseUrl: host }),
      apiKey: this.keyOf(target.get("api_key"), owner),
      ...(timeout === undefined ? {} : { timeouts: { total: timeout } }),
    };
  }

  private keyOf(node: SourceNode | undefined, owner: string): string {
    const written = node?.text();
    const variable = credentialVariableOf(owner);
    if (node === undefined || written === undefined || /\*{3}/.test(written))
      return `\${${variable}}`;
    node.report("changed", "the key goes to switchyard.env, not to the configuration");
    return this.plan.secret(variable, written);
  }

  private addKey(record: SourceNode): void {
    const name = record.get("name")?.text() ?? "portkey";
    const limits = record.get("usage_limits");
    const limit = limits?.get("credit_limit")?.number();
    const rates = record.get("rate_limits")?.items() ?? [];
    const perMinute = (type: string): number | undefined => {
      const rate = rates.find(
        (each) => each.get("type")?.text() === type && each.get("unit")?.text() === "rpm",
      );
      return rate?.get("value")?.number();
    };
    const [rate, tokens] = [perMinute("requests"), perMinute("tokens")];
    const expiry = expiryOf(record, "expires_at", { name, nowMs: this.plan.nowMs });
    const status = record.get("status")?.text() ?? "active";
    if (expiry === undefined) return;
    this.plan.keys.push({
      name,
      ...(limit === undefined
        ? {}
        : { limit, limit_reset: resetOf(limits?.get("periodic_reset")) }),
      ...(rate === undefined ? {} : { rate_limit: rate }),
      ...(tokens === undefined ? {} : { tpm: tokens }),
      ...expiry,
      ...(status === "active" ? {} : { disabled: true }),
    });
    if (limit !== undefined && limits?.get("periodic_reset") === undefined)
      limits?.get("credit_limit")?.report("changed", "is counted over 30 days, not for ever");
    const state = status === "active" ? "" : "disabled as it was, ";
    record.report("imported", `the key ${name}, ${state}with a new secret`);
  }
}

/** A server of a config, with the parameters that it and the strategies around it set. */
interface Target {
  node: SourceNode;
  parameters: readonly SourceNode[];
}

const namesProvider = (node: SourceNode): boolean =>
  ["provider", "virtual_key", "custom_host"].some((key) => node.get(key) !== undefined);

const isVirtualKey = (record: SourceNode): boolean => {
  const object = record.get("object")?.text();
  return (
    object === "virtual-key" ||
    object === "provider" ||
    record.get("ai_provider_name") !== undefined
  );
};
const isApiKey = (record: SourceNode): boolean =>
  record.get("object")?.text() === "api-key" ||
  (record.get("scopes") ?? record.get("creation_mode")) !== undefined;
const isConfig = (record: SourceNode): boolean => !isVirtualKey(record) && !isApiKey(record);

/** Returns the records of a file: an answer with one or many of them, or a single config. */
function recordsOf({ root }: SourceDocument): SourceNode[] {
  for (const fact of ["total", "object", "success", "has_more"]) root.get(fact)?.whole();
  if (root.isList()) return root.items();
  const lists = ["data", "configs", "virtual_keys", "providers", "api_keys"].flatMap((key) => {
    const part = root.get(key);
    if (part === undefined) return [];
    return part.isList() ? part.items() : (part.get("data")?.items() ?? [part]);
  });
  return lists.length > 0 ? lists : [root];
}

/** Returns the vendor that a name or a slug such as `openai-prod` implies. */
function vendorOf(name: string): string | undefined {
  const plain = name.toLowerCase();
  return (
    vendors[plain] ??
    Object.entries(vendors)
      .sort(([one], [other]) => other.length - one.length)
      .find(([each]) => plain.startsWith(`${each}-`))?.[1]
  );
}
