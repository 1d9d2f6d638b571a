import type { DialectId, Extensions } from "./dialect-id.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Message, CacheMarker, ToolKind } from "./message.ts";
import type { ReasoningRequest } from "./reasoning.ts";

/** Sampling parameters. Absent means the model's own default. */
export interface Sampling {
  temperature?: number;
  topP?: number;
  topK?: number;
  minP?: number;
  topA?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  repetitionPenalty?: number;
  seed?: number;
  /** The bias by token id. */
  logitBias?: Readonly<Record<string, number>>;
}

/** The form that the text of the answer must have. */
export type OutputFormat =
  | { type: "text" }
  | { type: "json" }
  | {
      type: "json-schema";
      schema?: JsonObject;
      name?: string;
      description?: string;
      strict?: boolean;
      /**
       * Whether the client wants one of a list of texts, bare: what the schema's only property,
       * `value`, may be.
       */
      picksText?: true;
    };

/** Options of the model's web search. */
export interface WebSearchOptions {
  /** low, medium or high. */
  contextSize?: string;
  /** The approximate place of the user: city, country, region, timezone. */
  userLocation?: JsonObject;
  extensions?: Extensions;
}

/** Caching of the whole prompt at the provider; cache markers within it are on the parts. */
export interface PromptCaching {
  key?: string;
  /** in_memory or 24h. */
  retention?: string;
  /** OpenAI's mode, ttl and prewarm, as written. */
  options?: JsonObject;
}

/** The caller's settings for the gateway itself; never sent to an upstream. */
export interface GatewayRequest {
  /** Fallback models, in order. */
  models?: readonly string[];
  /** The `provider` object: routing preferences. */
  provider?: JsonObject;
  sessionId?: string;
  /** The `trace` object. */
  trace?: JsonObject;
  requireParams?: readonly string[];
  minContext?: number;
}

/** A chat-like request, independent of any dialect. */
export interface CanonicalRequest {
  /** The dialect that the client spoke. */
  dialect: DialectId;
  /** The model id as the client wrote it. */
  model: string;
  messages: readonly Message[];
  stream: boolean;
  streamOptions?: { includeUsage?: boolean; includeObfuscation?: boolean };
  tools?: readonly Tool[];
  toolChoice?: ToolChoice;
  parallelToolCalls?: boolean;
  /** Whether the client uses chat's older fields `functions` and `function_call`. */
  legacyFunctions?: boolean;
  sampling?: Sampling;
  /** The number of answers, `n`. */
  choiceCount?: number;
  stop?: readonly string[];
  maxOutputTokens?: number;
  reasoning?: ReasoningRequest;
  output?: OutputFormat;
  /** low, medium or high. */
  verbosity?: string;
  /** Requests log probabilities, with `top` further candidates for each token. */
  logProbabilities?: { top?: number };
  /** The kinds of output: text, audio, image. */
  modalities?: readonly string[];
  /** The voice and format of audio output. */
  audio?: JsonObject;
  /** Text that the answer will mostly repeat, in chat's form. */
  prediction?: JsonObject;
  webSearch?: WebSearchOptions;
  promptCaching?: PromptCaching;
  metadata?: JsonObject;
  endUserId?: string;
  safetyIdentifier?: string;
  serviceTier?: string;
  store?: boolean;
  /** OpenAI's moderation of input and output, as written. */
  moderation?: JsonObject;
  gateway?: GatewayRequest;
  extensions?: Extensions;
}

/** Something of a request that the upstream's dialect cannot express. */
export interface Loss {
  /**
   * The lost field, in snake_case, such as `top_k` or `tools[0].strict`; of a conversation, the path
   * at which the client wrote it, such as `messages[2].content[1].detail`.
   */
  field: string;
  /** The reason, as a phrase for the caller, such as `openai-chat has no such field`. */
  reason: string;
}

/** The kinds of input and output beside text, by the capability that a model needs for them. */
export type ContentKind =
  | "vision"
  | "audio-input"
  | "document-input"
  | "image-generation"
  | "audio-output";

/** The abilities that a request needs of the model that serves it, beside its parameters. */
export interface RequestNeeds {
  kinds: ReadonlySet<ContentKind>;
  /** The requested effort; `none` where reasoning was turned off. */
  effort: string | undefined;
}

/** A tool whose input is a JSON object that a schema describes. */
export interface FunctionTool {
  type: "function";
  name: string;
  description?: string;
  /** The JSON Schema of the arguments; absent means none. */
  parameters?: JsonObject;
  strict?: boolean;
  /** Whether the model knows it only by name until a tool search loads it. */
  deferred?: boolean;
  /** The group that the name belongs to (Responses). */
  namespace?: string;
  inputExamples?: readonly JsonValue[];
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** The form that the free text of a custom tool must have. */
type CustomToolFormat = { type: "text" } | { type: "grammar"; syntax: string; definition: string };

/** A tool whose input is free text, which a grammar may constrain. */
export interface CustomTool {
  type: "custom";
  name: string;
  description?: string;
  format?: CustomToolFormat;
  deferred?: boolean;
  namespace?: string;
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** A tool that the provider runs itself, kept as its dialect wrote it. */
interface HostedTool {
  type: "hosted";
  dialect: DialectId;
  value: JsonObject;
  cache?: CacheMarker;
}

/** A tool of any kind. */
export type Tool = FunctionTool | CustomTool | HostedTool;

/** A tool as `allowed_tools` names it; hosted ones are kept as their dialect wrote them. */
export type AllowedTool = { type: ToolKind; name: string } | { type: "hosted"; value: JsonObject };

/** The tools that the model may or must call. */
export type ToolChoice =
  | { type: "auto" | "none" | "required" }
  | { type: "tool"; kind: ToolKind; name: string }
  | { type: "allowed"; mode: "auto" | "required"; tools: readonly AllowedTool[] }
  | { type: "hosted"; dialect: DialectId; value: JsonObject };
