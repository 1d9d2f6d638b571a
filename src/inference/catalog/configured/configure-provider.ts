import { nanoFromUsd } from "../../../platform/kernel/money.ts";
import {
  deviationsOf,
  firstSet,
  type Environment,
  type ProviderDefinition,
} from "../../providers/provider-definition.ts";
import { providerDefinitions } from "../../providers/index.ts";
import type { ConfiguredProvider, ConfiguredModel } from "./configured-provider.ts";
import {
  present,
  type CredentialHeader,
  type DataPolicy,
  type Provider,
  type UpstreamDialect,
  type UpstreamTimeouts,
  type CatalogModel,
  type ReasoningLevels,
  type Surface,
  type UpstreamRoute,
} from "../model.ts";
import type { PriceRow } from "../../../billing/ledger/price.ts";
import {
  categoryOf,
  ownerOf,
  configurationVersion,
  configuredPriceRow,
  freePriceRow,
  priceVersion,
} from "../fact-model.ts";
import { deviatingDialect, rulesFor } from "../model-rules.ts";

/** The place in the catalog to which a configured model is added. */
interface ConfiguredPlace {
  provider: Provider;
  /** The model as the catalog has it so far. */
  known: CatalogModel | undefined;
  /**
   * Whether the operator chose the provider's dialect, so that the vendor's deviations do not
   * apply.
   */
  redirected: boolean;
  /** The built-in vendor whose rules apply to its models: the provider itself, or what it is like. */
  vendorId: string;
  /** When the model counts as added where no other source says it. */
  addedAtMs: number;
}

/**
 * Returns the model with the configured route; what the entry says about the model overrides what
 * was known.
 */
export function configureModel(entry: ConfiguredModel, place: ConfiguredPlace): CatalogModel {
  const { known, provider } = place;
  const surface = entry.surface ?? known?.surface ?? "chat";
  const route = configuredRoute(entry, place);
  const others = (known?.routes ?? []).filter((other) => other.provider.id !== provider.id);
  return present({
    ...known,
    id: entry.id,
    displayName:
      entry.display_name ?? known?.displayName ?? entry.id.slice(entry.id.indexOf("/") + 1),
    owner: ownerOf(entry.id),
    surface,
    category: categoryOf(surface),
    contextLength: entry.context_length ?? known?.contextLength ?? 0,
    capabilities: withReasoning(
      entry,
      entry.capabilities ?? known?.capabilities ?? [capabilityOf(surface)],
    ),
    supportedParameters: declaredOn([route, ...others]),
    reasoning: reasoningOf(entry) ?? known?.reasoning,
    addedAtMs: known?.addedAtMs ?? place.addedAtMs,
    comingSoon: entry.coming_soon ?? known?.comingSoon,
    routes: [route, ...others],
  });
}

/**
 * Returns what any of the routes declares, in any order of configuration; undefined where none
 * declares anything.
 */
function declaredOn(routes: readonly UpstreamRoute[]): readonly string[] | undefined {
  const lists = routes.flatMap(({ supportedParameters: list }) =>
    list === undefined ? [] : [list],
  );
  return lists.length === 0 ? undefined : [...new Set(lists.flat())];
}

function configuredRoute(entry: ConfiguredModel, place: ConfiguredPlace): UpstreamRoute {
  const { known, provider, redirected, vendorId } = place;
  const old = known?.routes.find((route) => route.provider.id === provider.id);
  const upstreamModel =
    entry.upstream_model ?? old?.upstreamModel ?? entry.id.slice(entry.id.indexOf("/") + 1);
  const deviation = redirected ? undefined : deviatingDialect(vendorId, upstreamModel);
  const dialect = deviation === "none" ? undefined : deviation;
  const parameters = entry.supported_parameters ?? old?.supportedParameters;
  const reasoningFeature =
    entry.reasoning !== undefined ||
    (entry.capabilities?.includes("reasoning") ?? old?.reasoningFeature);
  const surface = entry.surface ?? known?.surface ?? "chat";
  const rules =
    surface === "chat" && !redirected
      ? rulesFor(vendorId, {
          upstreamModel,
          reasons: reasoningFeature === true || (old?.reasoning ?? known?.reasoning) !== undefined,
          parameters,
          deviation: dialect,
        })
      : {};
  return present({
    ...old,
    secondDialect: undefined,
    refuses: undefined,
    ...rules,
    provider,
    upstreamModel,
    dialect,
    price: priceOf(entry, { provider, surface, old: old?.price }),
    contextLength: entry.context_length ?? old?.contextLength,
    maxCompletionTokens: entry.max_completion_tokens ?? old?.maxCompletionTokens,
    quantization: entry.quantization ?? old?.quantization,
    supportedParameters: parameters,
    reasoning: reasoningOf(entry) ?? old?.reasoning,
    reasoningFeature,
    dataPolicy:
      entry.data_policy === undefined ? old?.dataPolicy : configuredDataPolicy(entry.data_policy),
  });
}

/**
 * Returns the price of a configured model. A price that was not given is unknown: the route cannot
 * be billed and serves callers with their own key. A model that is named free is free, and so is a
 * server of the operator's own.
 */
function priceOf(
  { id, pricing }: ConfiguredModel,
  { provider, surface, old }: { provider: Provider; surface: Surface; old: PriceRow | undefined },
): PriceRow | undefined {
  const version = priceVersion(provider.id, id, configurationVersion(pricing));
  if (pricing !== undefined) return configuredPriceRow(version, pricing, surface);
  if (old !== undefined) return old;
  return id.endsWith(":free") || provider.local ? freePriceRow(version) : undefined;
}

/**
 * Adds the reasoning capability to a model whose efforts are declared, whether or not its list of
 * capabilities has it.
 */
const withReasoning = (
  { reasoning }: ConfiguredModel,
  capabilities: readonly string[],
): readonly string[] =>
  reasoning === undefined || capabilities.includes("reasoning")
    ? capabilities
    : [...capabilities, "reasoning"];

const reasoningOf = ({ reasoning }: ConfiguredModel): ReasoningLevels | undefined =>
  reasoning === undefined
    ? undefined
    : present({ levels: reasoning.levels, default: reasoning.default });

const capabilities: Readonly<Record<Surface, string>> = {
  chat: "chat",
  embeddings: "embeddings",
  rerank: "rerank",
  moderations: "moderation",
  decisions: "decisions",
  documents: "documents",
  images: "image-generation",
  transcriptions: "transcription",
  speech: "speech",
  realtime: "realtime",
};

const capabilityOf = (surface: Surface): string => capabilities[surface];

/**
 * Returns a provider of the configuration, whose members override those of the built-in one of the
 * same id, if there is one. `like` copies the deviations of a known provider, and its dialects and
 * credential header where the entry names none. Without an `api_key` of its own, a new provider
 * serves only callers with their own keys.
 */
export function configureProvider(
  entry: ConfiguredProvider,
  { known, environment }: { known: Provider | undefined; environment: Environment },
): Provider {
  const baseUrl = resolveReference(entry.base_url, environment)?.replace(/\/+$/, "");
  const like = providerDefinitions.find(({ id }) => id === entry.like);
  const dialects = dialectsOf(entry.dialect) ?? known?.dialects ?? like?.dialects ?? openaiDialects;
  return present({
    ...known,
    id: entry.id,
    name: entry.name ?? known?.name ?? entry.id,
    description: entry.description ?? known?.description,
    baseUrl: baseUrl ?? known?.baseUrl,
    // Another address is another server, so the vendor's addresses of further surfaces do not
    // apply.
    surfaceBaseUrls: baseUrl === undefined ? known?.surfaceBaseUrls : undefined,
    dialectBaseUrls: baseUrl === undefined ? known?.dialectBaseUrls : undefined,
    dialects,
    credentialHeader:
      known?.credentialHeader ?? like?.credentialHeader ?? headerOfDialects(dialects),
    apiKey: credentialOf(entry, { known, environment }),
    signing: entry.api_key === undefined ? known?.signing : undefined,
    headers: entry.headers === undefined ? known?.headers : { ...known?.headers, ...entry.headers },
    dataPolicy: { ...known?.dataPolicy, ...configuredDataPolicy(entry.data_policy) },
    timeouts: timeoutsOf(entry.timeouts_ms, known?.timeouts),
    proxy: entry.proxy,
    batches: batchesOf(entry.batch_api, known?.batches),
    filesApi: entry.files_api === "none" ? undefined : (entry.files_api ?? known?.filesApi),
    passthrough: entry.passthrough?.map(({ path, methods, price }) => ({
      path,
      ...(methods !== undefined && { methods }),
      priceNanoUsd: nanoFromUsd(Number(price)) ?? 0n,
    })),
    deviations: deviationsOf(entry.deviations ?? [], (like ?? known)?.deviations ?? {}),
  });
}

/** The headers in which vendors' own clients send their key, by dialect. */
const headersByDialect: Partial<Record<UpstreamDialect, CredentialHeader>> = {
  "anthropic-messages": { name: "x-api-key", prefix: "" },
  "google-generate": { name: "x-goog-api-key", prefix: "" },
  "google-images": { name: "x-goog-api-key", prefix: "" },
  "google-audio": { name: "x-goog-api-key", prefix: "" },
  deepgram: { name: "authorization", prefix: "Token " },
  elevenlabs: { name: "xi-api-key", prefix: "" },
};

/** Returns how a server of these dialects expects its key: that of chat, or of what it offers. */
function headerOfDialects({ chat, ...others }: Provider["dialects"]): CredentialHeader {
  const [first] = chat === undefined ? Object.values(others) : [chat];
  return (first && headersByDialect[first]) ?? bearerHeader;
}

function credentialOf(
  { api_key: written }: ConfiguredProvider,
  { known, environment }: { known: Provider | undefined; environment: Environment },
): string | undefined {
  if (written === undefined) return known?.apiKey;
  return resolveReference(written, environment) || (known?.local ? "" : undefined);
}

const wholeReference = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/**
 * Returns the value of the variable in `${NAME}`, undefined when it is not set; other text is
 * returned as it is.
 */
function resolveReference(text: string | undefined, environment: Environment): string | undefined {
  const name = text === undefined ? undefined : wholeReference.exec(text)?.[1];
  return name === undefined ? text : environment[name] || undefined;
}

/**
 * The dialects that OpenAI's chat dialect implies for other surfaces; no other dialect implies any.
 */
const openaiDialects: Provider["dialects"] = {
  chat: "openai-chat",
  embeddings: "openai-embeddings",
  moderations: "openai-moderations",
  images: "openai-images",
  transcriptions: "openai-audio",
  speech: "openai-audio",
  realtime: "openai-realtime",
};

/** Returns the dialects by surface; any single dialect but OpenAI's is one of chat alone. */
function dialectsOf(dialect: ConfiguredProvider["dialect"]): Provider["dialects"] | undefined {
  if (dialect === undefined) return undefined;
  if (typeof dialect === "object") return present(dialect);
  return dialect === "openai-chat" ? openaiDialects : { chat: dialect };
}

/** Parses a `data_policy:` entry. */
const configuredDataPolicy = (policy: ConfiguredProvider["data_policy"]): DataPolicy =>
  present({
    zdr: policy?.zdr,
    dataCollection: policy?.data_collection,
    distillableText: policy?.distillable_text,
  });

const timeoutsOf = (
  timeouts: ConfiguredProvider["timeouts_ms"],
  base: UpstreamTimeouts = defaultTimeouts,
): UpstreamTimeouts => ({
  ...base,
  connectMs: timeouts?.connect ?? base.connectMs,
  firstTokenMs: timeouts?.first_token ?? base.firstTokenMs,
  idleMs: timeouts?.idle ?? base.idleMs,
  totalMs: timeouts?.total ?? base.totalMs,
  // A whole answer begins when it is finished, so only a limit that the operator set applies to its
  // beginning.
  ...(timeouts?.first_token === undefined ? {} : { wholeAnswerMs: timeouts.first_token }),
});

/** `Authorization: Bearer <credential>`, as nearly every vendor expects it (RFC 6750). */
const bearerHeader: CredentialHeader = { name: "authorization", prefix: "Bearer " };

/**
 * A connection takes a round trip or two; a minute without a token, or between two, means that
 * nothing more comes; ten minutes end answers that no client waits for.
 */
const defaultTimeouts: UpstreamTimeouts = {
  connectMs: 5_000,
  firstTokenMs: 60_000,
  idleMs: 60_000,
  totalMs: 600_000,
};

/**
 * Returns a built-in provider in this environment: with its address and the platform's credential,
 * where they are set.
 */
export function knownProvider(definition: ProviderDefinition, environment: Environment): Provider {
  const { baseUrl, local } = definition;
  const apiKey = firstSet(environment, definition.credentialVariables) ?? (local ? "" : undefined);
  return present({
    id: definition.id,
    name: definition.name,
    description: definition.description,
    website: definition.website,
    baseUrl: typeof baseUrl === "string" ? baseUrl : baseUrl(environment),
    surfaceBaseUrls: definition.surfaceBaseUrls,
    dialectBaseUrls: definition.dialectBaseUrls?.(environment),
    dialects: definition.dialects,
    credentialHeader: definition.credentialHeader ?? bearerHeader,
    apiKey,
    signing: apiKey === undefined ? definition.signing?.(environment) : undefined,
    headers: definition.headers,
    dataPolicy: definition.dataPolicy ?? {},
    timeouts: defaultTimeouts,
    deviations: definition.deviations ?? {},
    batches: definition.batches && { api: definition.batches, halvesPrices: true },
    filesApi: definition.filesApi,
    local,
  });
}

/** Returns the API for batches: what the entry names, or that of the built-in provider. */
function batchesOf(
  named: ConfiguredProvider["batch_api"],
  known: Provider["batches"],
): Provider["batches"] {
  if (named === undefined || named === known?.api) return known;
  return named === "none" ? undefined : { api: named, halvesPrices: false };
}
