import type { PicturePrices, PriceRow } from "../../billing/ledger/price.ts";
import type { PicoUsd } from "../../platform/kernel/money.ts";
import {
  dataPolicyOf,
  present,
  type UpstreamRoute,
  type CatalogModel,
  type ReasoningLevels,
} from "./model.ts";

/**
 * `pricing` of a model object. `prompt` and `completion` are USD per single token as decimal text,
 * the others USD per million tokens as numbers; see docs/decisions/0003-model-pricing-units.md.
 */
interface ModelPricing {
  prompt: string;
  completion: string;
  input_per_1m: number;
  output_per_1m: number;
  /**
   * `byok`: the provider bills; `member`: the price is that of the member of a routing preset that
   * serves.
   */
  billing?: "byok" | "member";
  list_pricing?: ListPricing;
  /**
   * The lowest price of a member, with `billing: member`, where the other numbers are the highest.
   */
  lowest?: ListPricing;
  /** USD of a picture, at its dearest size and quality, and by both. */
  image?: string;
  images?: Record<string, Record<string, number>>;
  /** USD of a minute of sound, and of a million characters that are spoken. */
  audio_input_minute?: number;
  audio_output_minute?: number;
  characters_per_1m?: number;
}

interface ListPricing {
  input_per_1m: number;
  output_per_1m: number;
}

/** Returns pico-USD per token as the shortest decimal text of USD per token, such as `0.000003`. */
export function usdPerTokenText(pico: PicoUsd): string {
  const fraction = (pico % 1_000_000_000_000n).toString().padStart(12, "0").replace(/0+$/, "");
  const whole = (pico / 1_000_000_000_000n).toString();
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** Returns pico-USD per token as the JSON number of USD per million tokens. */
const usdPerMillionNumber = (pico: PicoUsd): number => Number(pico) / 1e6;

const listPricing = ({ base }: PriceRow): ListPricing => ({
  input_per_1m: usdPerMillionNumber(base.inputTokens),
  output_per_1m: usdPerMillionNumber(base.outputTokens),
});

/** Returns the prices of what the gateway bills. */
const managedPricing = (price: PriceRow): ModelPricing => ({
  prompt: usdPerTokenText(price.base.inputTokens),
  completion: usdPerTokenText(price.base.outputTokens),
  ...listPricing(price),
  ...mediaPricing(price),
});

/** Returns the prices of pictures and sound, where a model has any. */
function mediaPricing({ base, pictures }: PriceRow): Partial<ModelPricing> {
  const { outputImages, inputAudioMinute, outputAudioMinute, characters } = base;
  return present({
    image: outputImages === undefined ? undefined : usdPerTokenText(outputImages),
    images: pictures && picturesTable(pictures),
    audio_input_minute: usdOf(inputAudioMinute),
    audio_output_minute: usdOf(outputAudioMinute),
    characters_per_1m: characters === undefined ? undefined : usdPerMillionNumber(characters),
  });
}

const usdOf = (pico: PicoUsd | undefined): number | undefined =>
  pico === undefined ? undefined : Number(pico) / 1e12;

/** Returns the USD of a picture by size and quality. */
const picturesTable = (pictures: PicturePrices): Record<string, Record<string, number>> =>
  Object.fromEntries(
    Object.entries(pictures).map(([size, byQuality]) => [
      size,
      Object.fromEntries(
        Object.entries(byQuality).map(([quality, pico]) => [quality, Number(pico) / 1e12]),
      ),
    ]),
  );

/**
 * Returns the prices of a routing preset: the highest of its members' routes, since the member that
 * will serve is not known, and the lowest.
 */
function memberPricing(routes: readonly UpstreamRoute[]): ModelPricing {
  const vectors = routes.flatMap(({ price }) => price?.base ?? []);
  const inputs = vectors.map(({ inputTokens }) => inputTokens).sort(byAmount);
  const outputs = vectors.map(({ outputTokens }) => outputTokens).sort(byAmount);
  const row = (at: 0 | -1): PriceRow => ({
    version: "",
    base: { inputTokens: inputs.at(at) ?? 0n, outputTokens: outputs.at(at) ?? 0n },
  });
  return { ...managedPricing(row(-1)), billing: "member", lowest: listPricing(row(0)) };
}

const byAmount = (left: PicoUsd, right: PicoUsd): number =>
  left < right ? -1 : left > right ? 1 : 0;

/**
 * Returns the prices of what the provider bills to the caller's own key: 0 here, with the list
 * price beside it when known.
 */
const byokPricing = (price: PriceRow | undefined): ModelPricing =>
  present({
    prompt: "0",
    completion: "0",
    input_per_1m: 0,
    output_per_1m: 0,
    billing: "byok" as const,
    list_pricing: price === undefined ? undefined : listPricing(price),
  });

/**
 * Returns the prices of one route with every part that has a price of its own, all in USD per
 * million tokens.
 */
export function routePricing({ base }: PriceRow): Record<string, number> {
  const parts = {
    input_per_1m: base.inputTokens,
    output_per_1m: base.outputTokens,
    cache_read_per_1m: base.cacheReadTokens,
    cache_write_per_1m: base.cacheWriteTokens,
    cache_write_1h_per_1m: base.cacheWriteOneHourTokens,
    reasoning_per_1m: base.reasoningTokens,
    image_per_1m: base.inputImageTokens,
    audio_per_1m: base.inputAudioTokens,
    image_output_per_1m: base.outputImageTokens,
    audio_output_per_1m: base.outputAudioTokens,
    image_cache_read_per_1m: base.cacheReadImageTokens,
    audio_cache_read_per_1m: base.cacheReadAudioTokens,
    characters_per_1m: base.characters,
  };
  const numbers = Object.entries(parts).flatMap(([name, pico]): [string, number][] =>
    pico === undefined ? [] : [[name, usdPerMillionNumber(pico)]],
  );
  const pieces = [
    ["per_request", base.request, 1],
    ["per_image", base.outputImages, 1],
    ["audio_input_per_minute", base.inputAudioMinute, 1],
    ["audio_output_per_minute", base.outputAudioMinute, 1],
    ["video_per_second", base.outputVideoMs, 1_000],
  ] as const;
  for (const [name, pico, times] of pieces) {
    if (pico !== undefined) numbers.push([name, Number(pico * BigInt(times)) / 1e12]);
  }
  return Object.fromEntries(numbers);
}

/** Returns the price of the priced route that is cheapest for one input and one output token. */
function cheapestPrice(routes: readonly UpstreamRoute[]): PriceRow | undefined {
  let cheapest: PriceRow | undefined;
  for (const { price } of routes) {
    if (price !== undefined && (cheapest === undefined || weight(price) < weight(cheapest)))
      cheapest = price;
  }
  return cheapest;
}

const weight = ({ base }: PriceRow): bigint =>
  base.inputTokens +
  base.outputTokens +
  (base.outputImages ?? 0n) +
  (base.inputAudioMs ?? 0n) +
  (base.outputAudioMs ?? 0n) +
  (base.characters ?? 0n);

/** The input and output of a model, in OpenRouter's terms. */
interface ModelArchitecture {
  /** Such as `text+image->text`. */
  modality: string;
  input_modalities: string[];
  output_modalities: string[];
  /** Null: not known. */
  instruct_type: null;
}

/** The effort levels of a model, with OpenRouter's names beside the contract's. */
interface ModelReasoning extends ReasoningLevels {
  supported_efforts: readonly string[];
  default_effort: string | null;
  /**
   * Whether neither a declared level nor a dialect that serves the model can turn reasoning off.
   */
  mandatory: boolean;
}

/** A model as `GET /models` shows it. */
export interface ModelObject {
  id: string;
  object: "model";
  display_name: string;
  /** The display name and the id again, where OpenRouter's clients look for them. */
  name: string;
  canonical_slug: string;
  provider: string;
  /** The same under OpenAI's name, without which typed clients refuse a list. */
  owned_by: string;
  providers: string[];
  category: CatalogModel["category"];
  context_length: number;
  pricing: ModelPricing;
  capabilities: readonly string[];
  architecture: ModelArchitecture;
  links: { details: string; metrics: string };
  reasoning?: ModelReasoning;
  /** Empty where none are declared, which permits all. */
  supported_parameters: readonly string[];
  /**
   * The gateway sets no defaults of its own, has no limits of a request beside the lengths, and
   * serves no voices.
   */
  default_parameters: null;
  per_request_limits: null;
  supported_voices: null;
  top_provider: {
    context_length: number;
    max_completion_tokens: number | null;
    is_moderated: false;
  };
  /** Empty for routing presets: the routes are those of their members. */
  per_upstream: UpstreamObject[];
  /** Ids of the models that a routing preset chooses from, in the order in which it tries them. */
  members?: string[];
  description?: string;
  /** Unix seconds, 0 when unknown: typed clients refuse a list without it. */
  created: number;
  coming_soon?: true;
}

/** A route as a model object shows it. */
interface UpstreamObject {
  provider: string;
  reasoning?: ReasoningLevels;
  features: { reasoning?: boolean };
  supported_parameters?: readonly string[];
  context: { context_length?: number; max_completion_tokens?: number };
  pricing?: Record<string, number>;
  quantization?: string;
  data_policy: { zdr?: boolean; data_collection?: "allow" | "deny"; distillable_text?: boolean };
  billing?: "byok";
}

/** A caller's view of a model. */
export interface ModelView {
  /**
   * Returns whether the gateway serves and bills this caller through a route; other routes are
   * BYOK.
   */
  reachable(route: UpstreamRoute): boolean;
}

/** Returns a catalog model in the contract's form. */
export function modelObject(model: CatalogModel, { reachable }: ModelView): ModelObject {
  // An announced model is not served yet; its price is the one that was announced.
  const reached = model.routes.filter(
    model.comingSoon ? ({ price }) => price !== undefined : reachable,
  );
  const { router } = model;
  const details = `/api/v1/models/${model.id}`;
  return present({
    id: model.id,
    object: "model" as const,
    display_name: model.displayName,
    name: model.displayName,
    canonical_slug: model.id,
    provider: model.owner,
    owned_by: model.owner,
    providers: [...new Set(model.routes.map(({ provider }) => provider.id))],
    category: model.category,
    context_length: model.contextLength,
    pricing: pricingOf(model, reached),
    capabilities: model.capabilities,
    architecture: architectureOf(model),
    links: { details, metrics: `${details}/metrics` },
    reasoning: reasoningOf(model),
    supported_parameters: model.supportedParameters ?? [],
    default_parameters: null,
    per_request_limits: null,
    supported_voices: null,
    top_provider: {
      context_length: model.contextLength,
      max_completion_tokens: strictestCap(reached.length > 0 ? reached : model.routes),
      is_moderated: false as const,
    },
    per_upstream:
      router !== undefined
        ? []
        : model.routes.map((route) => upstreamObject(route, reached.includes(route))),
    members: router?.members.map(({ id }) => id),
    alias_of: model.aliasOf,
    description: model.description,
    created: Math.floor(model.addedAtMs / 1000),
    coming_soon: model.comingSoon ? (true as const) : undefined,
  });
}

/** Kinds of input by the capability of a model that accepts them. */
const inputKinds = [
  ["vision", "image"],
  ["document-input", "file"],
  ["audio-input", "audio"],
] as const;

/** The output of surfaces that is not text. */
const outputKinds: Partial<Record<CatalogModel["surface"], string>> = {
  embeddings: "embeddings",
  rerank: "rerank",
  decisions: "decisions",
  images: "image",
  speech: "audio",
};

/** Kinds of output beside text, by the capability of a chat model that makes them. */
const madeKinds = [
  ["image-generation", "image"],
  ["audio-output", "audio"],
] as const;

/** Returns what a model makes, such as `text` and `image`. */
export function outputModalities({ capabilities, surface }: CatalogModel): string[] {
  const kind = outputKinds[surface];
  if (kind !== undefined) return [kind];
  const made = madeKinds.filter(([capability]) => capabilities.includes(capability));
  return ["text", ...made.map(([, name]) => name)];
}

function architectureOf(model: CatalogModel): ModelArchitecture {
  const { capabilities, surface } = model;
  const inputs = [
    surface === "transcriptions" ? "audio" : "text",
    ...(capabilities.includes("image-editing") ? ["image"] : []),
    ...inputKinds
      .filter(([capability]) => capabilities.includes(capability))
      .map(([, kind]) => kind),
  ];
  const outputs = outputModalities(model);
  return {
    modality: `${inputs.join("+")}->${outputs.join("+")}`,
    input_modalities: inputs,
    output_modalities: outputs,
    instruct_type: null,
  };
}

function reasoningOf({ reasoning, routes }: CatalogModel): ModelReasoning | undefined {
  if (reasoning === undefined) return undefined;
  // In Messages a request without `thinking` asks for none, regardless of the levels.
  const isOptIn = routes.some(
    ({ dialect, provider }) => (dialect ?? provider.dialects.chat) === "anthropic-messages",
  );
  return {
    ...reasoning,
    supported_efforts: reasoning.levels,
    default_effort: reasoning.default ?? null,
    mandatory: !isOptIn && !reasoning.levels.includes("none"),
  };
}

function pricingOf(
  { routes, router }: CatalogModel,
  reached: readonly UpstreamRoute[],
): ModelPricing {
  const price = cheapestPrice(reached);
  // A preset without members has no price of any kind.
  if (router !== undefined && (price !== undefined || routes.length === 0))
    return memberPricing(reached);
  return price === undefined ? byokPricing(cheapestPrice(routes)) : managedPricing(price);
}

function upstreamObject(route: UpstreamRoute, reached: boolean): UpstreamObject {
  const { zdr, dataCollection, distillableText } = dataPolicyOf(route);
  return present({
    provider: route.provider.id,
    reasoning: route.reasoning,
    features: present({ reasoning: route.reasoningFeature }),
    supported_parameters: route.supportedParameters,
    context: present({
      context_length: route.contextLength,
      max_completion_tokens: route.maxCompletionTokens,
    }),
    pricing: route.price === undefined ? undefined : routePricing(route.price),
    quantization: route.quantization,
    data_policy: present({
      zdr,
      data_collection: dataCollection,
      distillable_text: distillableText,
    }),
    billing: reached ? undefined : ("byok" as const),
  });
}

/** Returns the lowest cap that any route declares, null when none does. */
export function strictestCap(routes: readonly UpstreamRoute[]): number | null {
  const caps = routes.flatMap(({ maxCompletionTokens }) => maxCompletionTokens ?? []);
  return caps.length === 0 ? null : Math.min(...caps);
}
