import type { AliasTarget } from "../../../platform/kernel/models/model-alias.ts";
import { canBeAlias, type ImportPlan, withoutPrice } from "../import-plan.ts";
import { presetParametersOf } from "../preset-parameters.ts";
import type { SourceDocument } from "../source-document.ts";
import type { SourceNode } from "../source-node.ts";
import { pricingOf } from "./tensorzero-cost.ts";
import { TensorZeroUpstreams, vendorOf } from "./tensorzero-upstreams.ts";

const reasons: readonly (readonly [RegExp, string])[] = [
  [/^rate_limiting/, "limits are set on keys, in requests and tokens a minute and in USD"],
  [/^gateway\.(observability|export)/, "see /docs/operate/observability"],
  [/^gateway\.auth/, "every request needs a key of the gateway; see /docs/guides/team-keys"],
  [/^(gateway|clickhouse|postgres|object_storage)/, "is part of the gateway's own configuration"],
  [
    /_(template|schema)$|\.templates|\.schemas/,
    "templates are filled by the client; see prompts of the hub",
  ],
  [/^(metrics|evaluations|optimizers)/, "there are no metrics of answers and no evaluations"],
  [/^tools|\.tools$|\.tool_choice$|provider_tools$/, "clients send their tools with each request"],
  [/extra_body$/, "requests are sent as the client and the dialect make them"],
  [/retries/, "the next provider or model is tried at once"],
  [/batch_cost$/, "the catalog knows the discounts of batches"],
  [/\.json_mode$/, "clients send response_format with each request"],
];

/** A model that requests may name, or why there is none. */
type Asked = { id: string } | { problem: string };

/** A variant of a function that asks one model once. */
interface Variant {
  node: SourceNode;
  name: string;
  id: string;
  weight: number | undefined;
  parameters: Record<string, unknown>;
}

/** How clients of TensorZero name a model or a function as the model of a request. */
const clientName = (kind: "model" | "function", name: string): string =>
  `tensorzero::${kind}_name::${name}`;

/**
 * Reads tensorzero.toml: models with their providers and prices, and functions, whose variants
 * become names with weights. Clients keep the names that they use.
 */
export class TensorZeroImport {
  private readonly upstreams: TensorZeroUpstreams;
  private readonly ids = new Map<string, string>();

  constructor(private readonly plan: ImportPlan) {
    this.upstreams = new TensorZeroUpstreams(plan);
  }

  /** Fills the plan from all files, starting with what others refer to. */
  run(sources: readonly SourceDocument[]): void {
    const roots = sources.map(({ root }) => root);
    for (const root of roots) this.upstreams.readDefaults(root.get("provider_types"));
    for (const root of roots) {
      for (const [name, model] of root.get("models")?.entries() ?? [])
        this.addModel(name, model, "chat");
      for (const [name, model] of root.get("embedding_models")?.entries() ?? [])
        this.addModel(name, model, "embeddings");
    }
    for (const root of roots)
      for (const [name, part] of root.get("functions")?.entries() ?? [])
        this.addFunction(name, part);
    for (const source of sources)
      source.finish(
        (path) => reasons.find(([pattern]) => pattern.test(path))?.[1] ?? "has no counterpart",
      );
  }

  private addModel(name: string, model: SourceNode, surface: "chat" | "embeddings"): void {
    const routing = model.get("routing");
    const providers = model.get("providers");
    const wanted = routing?.texts() ?? providers?.entries().map(([key]) => key) ?? [];
    const served: string[] = [];
    for (const [key, node] of providers?.entries() ?? [])
      if (!wanted.includes(key)) node.report("left_out", "is not among the routing of its model");
    for (const key of wanted) {
      const node = providers?.get(key);
      const id = node && this.addDeployment({ name, node, model, surface });
      if (id !== undefined) served.push(id);
    }
    const [id] = served;
    if (id === undefined) return;
    this.ids.set(name, id);
    this.plan.names.set(clientName("model", name), id);
    if (served.length > 1)
      routing?.report(
        "changed",
        "providers are ordered by price and health, or by provider.order of a request or preset",
      );
  }

  private addDeployment({
    name,
    node,
    model,
    surface,
  }: {
    name: string;
    node: SourceNode;
    model: SourceNode;
    surface: "chat" | "embeddings";
  }): string | undefined {
    const upstream = this.upstreams.upstreamOf(node, model.get("timeouts"));
    if (upstream === undefined) return undefined;
    const wireName = ["model_name", "model_id", "deployment_id"]
      .map((field) => node.get(field)?.text())
      .find((text) => text !== undefined);
    const owner = upstream.vendor ?? upstream.name ?? "server";
    const id = this.ids.get(name) ?? this.plan.modelId(name, owner);
    const pricing = pricingOf(node.get("cost"));
    const added = this.plan.addModel(upstream, {
      id,
      upstreamModel: wireName ?? name,
      settings: { ...(surface === "chat" ? {} : { surface }), ...(pricing && { pricing }) },
    });
    if (typeof added === "object") {
      node.report("left_out", added.problem);
      return undefined;
    }
    const unpriced = withoutPrice(added);
    node.report(
      unpriced === undefined ? "imported" : "changed",
      unpriced === undefined ? `${name} is ${id}` : `${id}: ${unpriced}`,
    );
    this.ids.set(name, id);
    return id;
  }

  /** Returns the model of a variant: one of the file, or one that a shorthand names. */
  private askedModel(written: string): Asked {
    const known = this.ids.get(written);
    if (known !== undefined) return { id: known };
    const [, type = "", wireName = ""] = /^([a-z_]+)::(.+)$/.exec(written) ?? [];
    const vendor = vendorOf(type);
    if (vendor === undefined) return { problem: `names no model of the file: ${written}` };
    const id = this.plan.modelId(wireName, vendor);
    const added = this.plan.addModel(this.upstreams.shorthand(type, vendor), {
      id,
      upstreamModel: wireName,
      settings: {},
    });
    if (typeof added === "object") return { problem: `${written}: ${added.problem}` };
    this.ids.set(written, id);
    return { id };
  }

  private addFunction(name: string, part: SourceNode): void {
    part.get("type")?.text();
    part.get("description")?.text();
    const variants = (part.get("variants")?.entries() ?? []).flatMap(([key, node]) =>
      this.variantOf(key, node),
    );
    const weights = weightsOf(part.get("experimentation"));
    const weighted = variants.map((variant) => ({
      ...variant,
      weight: weights === undefined ? variant.weight : weights.get(variant.name),
    }));
    const drawn = weighted.some(({ weight }) => weight !== undefined && weight > 0)
      ? weighted.filter(({ weight }) => weight !== undefined && weight > 0)
      : weighted;
    const [first] = drawn;
    if (first === undefined) {
      part.report("left_out", "has no variant that asks one model");
      return;
    }
    const others = weighted.filter((variant) => !drawn.includes(variant));
    this.addName(part, name, targetOf(drawn, others));
    const isOne = drawn.length === 1;
    if (isOne && Object.keys(first.parameters).length > 0) this.addPreset(part, name, first);
    for (const { node, parameters } of isOne ? others : drawn)
      if (Object.keys(parameters).length > 0)
        node.report("changed", "its parameters have no counterpart: clients send them");
  }

  private addName(part: SourceNode, name: string, target: AliasTarget): void {
    const alias = clientName("function", name);
    if (!canBeAlias(alias)) return part.report("left_out", `${alias} cannot be a name here`);
    this.plan.aliases.set(alias, target);
    const isSplit = Array.isArray(target) && target.some((entry) => typeof entry === "object");
    part.report(
      "imported",
      `${alias} is an entry of aliases${isSplit ? ", split by the weights of its variants" : ""}`,
    );
  }

  private addPreset(part: SourceNode, name: string, { id, parameters }: Variant): void {
    const slug = this.plan.presetSlug(name);
    this.plan.presets.push({ slug, name, config: { model: id, ...parameters } });
    part.report("imported", `@preset/${slug} has the parameters of its variant`);
  }

  private variantOf(name: string, node: SourceNode): Variant[] {
    const type = node.get("type")?.text() ?? "chat_completion";
    const written = node.get("model")?.text();
    const weight = node.get("weight")?.number();
    if (type !== "chat_completion" || written === undefined) {
      node.report("left_out", "only variants that ask one model once have a counterpart");
      return [];
    }
    const asked = this.askedModel(written);
    if ("problem" in asked) {
      node.get("model")?.report("left_out", asked.problem);
      return [];
    }
    const stops = node.get("stop_sequences")?.texts() ?? [];
    const parameters = {
      ...presetParametersOf(node),
      ...(stops.length === 0 ? {} : { stop: stops }),
    };
    return [{ node, name, id: asked.id, weight, parameters }];
  }
}

/** Returns the weights of an experiment by variant; undefined where it has none. */
function weightsOf(node: SourceNode | undefined): ReadonlyMap<string, number> | undefined {
  const candidates = node?.get("candidate_variants");
  node?.get("type")?.text();
  if (candidates === undefined) return undefined;
  if (candidates.isList()) return new Map(candidates.texts().map((name) => [name, 1]));
  return new Map(candidates.entries().map(([name, part]) => [name, part.number() ?? 0]));
}

/**
 * Returns what a function's name means: its only model, with those of the other variants as
 * fallbacks, or its models by weight. Variants of the same model are one entry.
 */
function targetOf(drawn: readonly Variant[], others: readonly Variant[]): AliasTarget {
  const weights = new Map<string, number>();
  for (const { id, weight = 1 } of drawn) weights.set(id, (weights.get(id) ?? 0) + weight);
  const [first = "", ...more] = weights.keys();
  const fallbacks = [...new Set(others.map(({ id }) => id))].filter((id) => !weights.has(id));
  if (more.length === 0) return fallbacks.length === 0 ? first : [first, ...fallbacks];
  return [...weights].map(([id, weight]) => ({
    model: fallbacks.length === 0 ? id : [id, ...fallbacks],
    weight: Math.round(weight * 1e6) / 1e6,
  }));
}
