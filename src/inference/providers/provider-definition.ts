import type { DialectId } from "../canonical/dialect-id.ts";
import type { DialectDeviations } from "../dialects/dialect.ts";

/** Inference surfaces that a model is served on. */
export type Surface = "chat" | "embeddings" | "rerank" | "moderations" | "decisions" | "documents";

/** Wire formats spoken by upstreams. */
export type UpstreamDialect =
  | DialectId
  | "openai-embeddings"
  | "cohere-embed"
  | "voyage-embeddings"
  | "jina-embeddings"
  | "google-embed"
  | "cohere-rerank"
  | "jina-rerank"
  | "voyage-rerank"
  | "openai-moderations"
  | "guard-chat"
  | "decisions"
  | "chat-logprobs"
  | "documents-parse";

/** What a provider does with what it is sent; an absent answer is not known. */
export interface DataPolicy {
  zdr?: boolean;
  dataCollection?: "allow" | "deny";
  distillableText?: boolean;
}

/**
 * Named deviations of a vendor from the dialects it speaks: those of bodies, which the dialects
 * know themselves, and those of addresses. Absent means it does as the dialect says.
 */
export interface ProviderDeviations extends DialectDeviations {
  /**
   * How Messages requests are addressed where not by `/messages`: Vertex AI's `{model}:rawPredict`
   * or Bedrock's `/model/{model}/invoke`. The model then stands in the path alone.
   */
  messagesPath?: "raw-predict" | "invoke-model";
  /** `anthropic_version` of the body, which replaces the header of that name. */
  bodyVersion?: string;
  /** Streamed Messages come in Amazon's binary frames rather than as server-sent events. */
  eventStreamFrames?: boolean;
  /**
   * Betas of Messages that the vendor knows; it answers 400 to others. Absent means that all may be
   * sent.
   */
  knownBetas?: readonly string[];
  /** Members of a Messages body that the vendor answers with 400. */
  unknownMessagesFields?: readonly string[];
}

/**
 * A credential that signs requests, where a vendor takes more than a constant header: an AWS key
 * (Signature Version 4), or a Google service account's key, as JSON or in a file.
 */
export type SigningCredential =
  | {
      type: "aws-sigv4";
      accessKeyId: string;
      secretAccessKey: string;
      sessionToken?: string;
      region: string;
      service: string;
    }
  | { type: "google-service-account"; key: { json: string } | { file: string } };

/** How a credential travels, such as header `authorization` with prefix `Bearer `. */
export interface CredentialHeader {
  name: string;
  prefix: string;
}

/** Environment variables by name, as the process was started with. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** How the vendor's wire names tell who made a model. */
export interface ModelNaming {
  /** The maker of every model that has a bare name; absent means that the name itself tells. */
  maker?: string;
  /** What stands between maker and model where it is no slash. */
  separator?: ".";
  /** Taken off the front of a wire name before it is read; the first that fits. */
  strip?: readonly string[];
  /** What is written for the decimal point in version numbers, such as `p` in `glm-5p1`. */
  decimalPoint?: "p" | "-";
}

/** Models that the vendor does not serve in its usual chat dialect. */
interface ModelDeviation {
  /** Tested against the wire name. */
  match: RegExp;
  /**
   * The dialect they are served in; `none` where no dialect here reaches them at the provider's
   * address.
   */
  dialect: UpstreamDialect | "none";
}

/** What is known of a vendor before any configuration: data, and its deviations by name. */
export interface ProviderDefinition {
  /** Slug; what `provider.order`, `only` and `ignore` match. */
  id: string;
  name: string;
  /** At most 200 characters. */
  description: string;
  website: string;
  /** Without a trailing slash; a function where the address depends on the account. */
  baseUrl: string | ((environment: Environment) => string | undefined);
  /** Addresses of surfaces that are served elsewhere. */
  surfaceBaseUrls?: Partial<Record<Surface, string>>;
  /**
   * Addresses of chat dialects that are served elsewhere; undefined while their variables are
   * unset.
   */
  dialectBaseUrls?: (environment: Environment) => Partial<Record<UpstreamDialect, string>>;
  /** Environment variables that may hold the credential; the first that is set counts. */
  credentialVariables: readonly string[];
  /** A credential that signs, for an environment without one of the variables above. */
  signing?: (environment: Environment) => SigningCredential | undefined;
  /** Default `authorization: Bearer `. */
  credentialHeader?: CredentialHeader;
  /** Further headers that the vendor requires. */
  headers?: Readonly<Record<string, string>>;
  /** Dialect by surface; a surface that is absent is not offered. */
  dialects: Partial<Record<Surface, UpstreamDialect>>;
  deviatingModels?: readonly ModelDeviation[];
  /** Only what the vendor states in public; defaults of its terms, not of special contracts. */
  dataPolicy?: DataPolicy;
  deviations?: ProviderDeviations;
  naming: ModelNaming;
  /** Id of the vendor in the facts source, where it differs from `id`. */
  factsId?: string;
  /**
   * True for servers on the operator's own machines: no key needed, active once their address is
   * set.
   */
  local?: true;
}

/** The value of the first variable that is set to something; undefined when none is. */
export function firstSet(environment: Environment, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = environment[name]?.trim();
    if (value) return value;
  }
  return undefined;
}

/** A host name or address part from a variable: without scheme and without slashes at the end. */
export const hostFrom = (environment: Environment, names: readonly string[]): string | undefined =>
  firstSet(environment, names)
    ?.replace(/^https?:\/\//, "")
    .replace(/\/+$/, "");

/** Deviations that the operator can name for a server, each with what it sets. */
const deviationByName: ReadonlyMap<string, DialectDeviations> = new Map(
  Object.entries({
    max_tokens: { maxTokensField: "max_tokens" },
    max_completion_tokens: { maxTokensField: "max_completion_tokens" },
    either_max_tokens: { maxTokensField: "either" },
    no_stream_options: { noStreamOptions: true },
    system_only_first: { systemOnlyFirst: true },
    developer_role: { developerRole: true },
    custom_tools: { customTools: true },
    reasoning_object: { reasoningObject: true },
    replay_reasoning_content: { reasoningReplay: "reasoning_content" },
    replay_reasoning: { reasoningReplay: "reasoning" },
    replay_reasoning_details: { reasoningReplay: "reasoning_details" },
    replay_content: { reasoningReplay: "content" },
    cache_control: { cacheMarkers: "cache_control" },
    prompt_cache_breakpoint: { cacheMarkers: "prompt_cache_breakpoint" },
  } satisfies Record<string, DialectDeviations>),
);

/**
 * In front of a field's name: the server answers 400 to that field, so that it is left out of
 * translated requests.
 */
const refusesPrefix = "refuses_";

/**
 * Request fields that a server may refuse, by wire name; none that a request is nothing without.
 */
const refusableFields = [
  "audio",
  "frequency_penalty",
  "logit_bias",
  "logprobs",
  "metadata",
  "min_p",
  "modalities",
  "moderation",
  "n",
  "parallel_tool_calls",
  "prediction",
  "presence_penalty",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "reasoning_effort",
  "repetition_penalty",
  "response_format",
  "safety_identifier",
  "seed",
  "service_tier",
  "stop",
  "store",
  "temperature",
  "tool_choice",
  "top_a",
  "top_k",
  "top_logprobs",
  "top_p",
  "user",
  "verbosity",
  "web_search_options",
];

/** Every name that `deviations:` takes. */
export const deviationNames: readonly string[] = [
  ...deviationByName.keys(),
  ...refusableFields.map((field) => refusesPrefix + field),
];

/**
 * Returns the deviations that the names set, over those of the provider that the server is
 * like.
 */
export function deviationsOf(
  names: readonly string[],
  base: ProviderDeviations,
): ProviderDeviations {
  const refused = names
    .filter((name) => name.startsWith(refusesPrefix))
    .map((name) => name.slice(refusesPrefix.length));
  const unsupportedFields = [...new Set([...(base.unsupportedFields ?? []), ...refused])];
  return {
    ...base,
    ...(Object.assign({}, ...names.map((name) => deviationByName.get(name))) as DialectDeviations),
    ...(unsupportedFields.length > 0 && { unsupportedFields }),
  };
}

/**
 * Returns the earlier of the named deviations that sets the same deviation as the one at `index`;
 * undefined where none does.
 */
export function contradictedBy(names: readonly string[], index: number): string | undefined {
  const [set] = Object.keys(deviationByName.get(names[index] ?? "") ?? {});
  return set === undefined
    ? undefined
    : names.slice(0, index).find((name) => set in (deviationByName.get(name) ?? {}));
}
