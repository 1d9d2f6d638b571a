import type { DialectId } from "../canonical/dialect-id.ts";
import type { DialectDeviations, RefusedParameters } from "../dialects/deviations.ts";

export type { RefusedParameters };

/** Inference surfaces that a model is served on. */
export const surfaces = [
  "chat",
  "embeddings",
  "rerank",
  "moderations",
  "decisions",
  "documents",
  "images",
  "transcriptions",
  "speech",
  "realtime",
] as const;

/** One of `surfaces`. */
export type Surface = (typeof surfaces)[number];

/** Wire formats of upstreams. */
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
  | "documents-parse"
  | "openai-images"
  | "google-images"
  | "openai-audio"
  | "google-audio"
  | "deepgram"
  | "elevenlabs"
  | "openai-realtime"
  | "azure-realtime"
  | "google-live";

/** A vendor's endpoint for plain completions. */
export interface OwnCompletions {
  /**
   * As OpenAI's; as that of llama.cpp's server, which refuses `best_of`, `echo` and `suffix`; or as
   * Mistral's, which answers in the form of a chat.
   */
  form: "openai" | "llama.cpp" | "mistral";
  /** The path below the provider's address; absent means `/completions`. */
  path?: string;
  /** The wire names of the models that it serves; absent means all. */
  models?: RegExp;
  /** Whether it takes one text alone: neither several, nor token ids, nor one that is only scored. */
  oneText?: true;
  /** Whether `stop` has to be a list. */
  stopIsList?: true;
  /** The members of a body that it takes, beside model and prompt; absent means all. */
  fields?: readonly string[];
  /** The most output tokens that may be asked for; absent means what the model has. */
  outputTokensMax?: number;
}

/** A provider's use of the data that it receives; an absent member is unknown. */
export interface DataPolicy {
  zdr?: boolean;
  dataCollection?: "allow" | "deny";
  distillableText?: boolean;
}

/**
 * Named deviations of a vendor from the dialects that it speaks: those of bodies, which the
 * dialects define, and those of addresses. Absent means that it behaves as the dialect says.
 */
export interface ProviderDeviations extends DialectDeviations {
  /**
   * The path of Messages requests other than `/messages`: Vertex AI's `{model}:rawPredict` or
   * Bedrock's `/model/{model}/invoke`. Only the path then names the model.
   */
  messagesPath?: "raw-predict" | "invoke-model";
  /** `anthropic_version` of the body, which replaces the header of that name. */
  bodyVersion?: string;
  /** Whether streamed Messages are Amazon's binary frames rather than server-sent events. */
  eventStreamFrames?: boolean;
  /**
   * The Messages betas that the vendor knows; it answers 400 to others. Absent means that all may
   * be sent.
   */
  knownBetas?: readonly string[];
  /** The beta in place of `eager_input_streaming` of tools, which the vendor answers with 400. */
  eagerBeta?: string;
  /** Members of a Messages body that the vendor answers with 400. */
  unknownMessagesFields?: readonly string[];
  /** Whether responses can be asked for on WebSockets too, which remember them. */
  responsesSocket?: boolean;
  /** The endpoint for plain completions. Absent where completions are asked for as a chat. */
  ownCompletions?: OwnCompletions;
  /** How pictures are asked for where not by OpenAI's sizes: by ratio (xAI), or by sides (Together). */
  pictures?: "aspect-ratio" | "width-height";
}

/**
 * A credential that signs requests, where a vendor requires more than a constant header: an AWS key
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

/** The header that carries a credential, such as `authorization` with prefix `Bearer `. */
export interface CredentialHeader {
  name: string;
  prefix: string;
}

/** Environment variables by name, as the process was started with. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Rules by which the vendor's wire names identify the maker of a model. */
export interface ModelNaming {
  /** The maker of every model with a bare name; absent means that the name itself implies it. */
  maker?: string;
  /** The separator of maker and model where it is not a slash. */
  separator?: ".";
  /** Prefixes that are removed from a wire name before it is parsed; the first match counts. */
  strip?: readonly string[];
  /** The decimal point in version numbers, such as `p` in `glm-5p1`. */
  decimalPoint?: "p" | "-";
}

/** Models that the vendor does not serve in its usual chat dialect. */
interface ModelDeviation {
  /** Tested against the wire name. */
  match: RegExp;
  /**
   * The dialect in which they are served; `none` where no dialect here reaches them at the
   * provider's address.
   */
  dialect: UpstreamDialect | "none";
}

/** A model as a vendor's rules see it. */
export interface NamedModel {
  /** The wire name. */
  name: string;
  /** Whether it reasons, as far as the catalog or its name says. */
  reasons: boolean;
  /** Whether the catalog declares levels of effort, or knows no parameters of it. */
  takesEffort: boolean;
}

/** A further chat dialect in which a vendor serves its models. */
interface SecondDialect {
  dialect: "openai-responses";
  /** Models that are not served in it, by wire name. */
  except: RegExp;
  /** Models that take tools in it alone, with reasoning or without, by wire name. */
  toolsAlone?: RegExp;
}

/** The facts about a vendor before any configuration: data, and its deviations by name. */
export interface ProviderDefinition {
  /** The slug; `provider.order`, `only` and `ignore` match it. */
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
  /** Environment variables that may hold the credential; the first one that is set counts. */
  credentialVariables: readonly string[];
  /** A credential that signs, for an environment without one of the variables above. */
  signing?: (environment: Environment) => SigningCredential | undefined;
  /** Default `authorization: Bearer `. */
  credentialHeader?: CredentialHeader;
  /** Further headers that the vendor requires. */
  headers?: Readonly<Record<string, string>>;
  /** The dialect by surface; a surface that is absent is not offered. */
  dialects: Partial<Record<Surface, UpstreamDialect>>;
  deviatingModels?: readonly ModelDeviation[];
  /** The API for batches, which cost half the ordinary price; absent where there is none. */
  batches?: "openai" | "anthropic" | "google";
  /** The API for files, whose ids requests may have in place of contents; absent means none. */
  filesApi?: "openai" | "anthropic" | "google";
  /**
   * Served beside the usual chat dialect: to its own clients, and to requests that offer tools to a
   * model that reasons.
   */
  secondDialect?: SecondDialect;
  /** Wire names of models that reason, for models of which the catalog does not say it. */
  reasoningNames?: RegExp;
  /** Returns the parameters that a model answers with 400, by their names in chat. */
  refuses?: (model: NamedModel) => RefusedParameters;
  /** Only what the vendor states publicly: the defaults of its terms, not of special contracts. */
  dataPolicy?: DataPolicy;
  deviations?: ProviderDeviations;
  naming: ModelNaming;
  /** The id of the vendor in the facts source, where it differs from `id`. */
  factsId?: string;
  /**
   * Whether it is a server on the operator's own machines: no key needed, active once its address
   * is set.
   */
  local?: true;
}

/** Returns the value of the first nonempty variable; undefined when none is set. */
export function firstSet(environment: Environment, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = environment[name]?.trim();
    if (value) return value;
  }
  return undefined;
}

/**
 * Returns a host name or part of an address from a variable: without scheme and trailing slashes.
 */
export const hostFrom = (environment: Environment, names: readonly string[]): string | undefined =>
  firstSet(environment, names)
    ?.replace(/^https?:\/\//, "")
    .replace(/\/+$/, "");

/** Deviations that the operator can name for a server, each with what it sets. */
const deviationByName: ReadonlyMap<string, ProviderDeviations> = new Map(
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
    message_threads: { messageThreads: true },
    text_only: { readsTextAlone: true },
    json_without_schema: { jsonWithoutSchema: true },
    no_empty_turns: { refusesEmptyTurns: true },
    no_user_after_tool: { answersResults: true },
    plain_schemas: { plainSchemas: true },
    no_named_tool_choice: { unnamedToolChoice: true },
    no_reasoning_summary: { noReasoningSummary: true },
    nine_character_call_ids: { callIds: "nine-characters" },
    reasoning_beside_calls: { reasoningBesideCalls: true, reasoningReplay: "reasoning_content" },
    responses_socket: { responsesSocket: true },
    own_completions: { ownCompletions: { form: "openai" } },
    llama_cpp_completions: { ownCompletions: { form: "llama.cpp" } },
  } satisfies Record<string, ProviderDeviations>),
);

/**
 * The prefix of a field's name for a server that answers 400 to that field, so that it is left out
 * of requests.
 */
const refusesPrefix = "refuses_";

/** Request fields that a server may refuse, by wire name; none that a request cannot do without. */
const refusableFields = [
  "audio",
  "frequency_penalty",
  "inference_geo",
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
  "speed",
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

/** Every name that `deviations:` accepts. */
export const deviationNames: readonly string[] = [
  ...deviationByName.keys(),
  ...refusableFields.map((field) => refusesPrefix + field),
];

/**
 * Returns the deviations that the names set, which override those of the provider that the server
 * is like.
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
    ...(Object.assign({}, ...names.map((name) => deviationByName.get(name))) as ProviderDeviations),
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
