import type { DialectId, Extensions } from "./dialect-id.ts";
import type { JsonObject } from "./json.ts";
import type { Message } from "./message.ts";
import type { ReasoningRequest } from "./reasoning.ts";
import type { Tool, ToolChoice } from "./tool.ts";

/** How the next token is drawn. Absent means the model's own default. */
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
  /** Bias by token id. */
  logitBias?: Readonly<Record<string, number>>;
}

/** What shape the text of the answer must have. */
export type OutputFormat =
  | { type: "text" }
  | { type: "json" }
  | {
      type: "json-schema";
      schema?: JsonObject;
      name?: string;
      description?: string;
      strict?: boolean;
    };

/** How the model should search the web. */
export interface WebSearchOptions {
  /** low, medium or high. */
  contextSize?: string;
  /** Approximate place of the user: city, country, region, timezone. */
  userLocation?: JsonObject;
  extensions?: Extensions;
}

/** How the provider should cache the prompt as a whole; markers within it stand on the parts. */
export interface PromptCaching {
  key?: string;
  /** in_memory or 24h. */
  retention?: string;
  /** OpenAI's mode, ttl and prewarm, as written. */
  options?: JsonObject;
}

/** What the caller asks of the gateway itself; never sent to an upstream. */
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

/** A chat-shaped request in no one's dialect. */
export interface CanonicalRequest {
  /** The dialect that the client spoke. */
  dialect: DialectId;
  /** As the client wrote it. */
  model: string;
  messages: readonly Message[];
  stream: boolean;
  streamOptions?: { includeUsage?: boolean; includeObfuscation?: boolean };
  tools?: readonly Tool[];
  toolChoice?: ToolChoice;
  parallelToolCalls?: boolean;
  /** True when the client speaks the older `functions` and `function_call` fields of chat. */
  legacyFunctions?: boolean;
  sampling?: Sampling;
  /** Number of answers, `n`. */
  choiceCount?: number;
  stop?: readonly string[];
  maxOutputTokens?: number;
  reasoning?: ReasoningRequest;
  output?: OutputFormat;
  /** low, medium or high. */
  verbosity?: string;
  /** Log probabilities are wanted; `top` more candidates for each token. */
  logProbabilities?: { top?: number };
  /** Kinds of output: text, audio, image. */
  modalities?: readonly string[];
  /** Voice and format of audio output. */
  audio?: JsonObject;
  /** Text that the answer will mostly repeat, as chat writes it. */
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

/** Something of the request that the upstream's dialect cannot say. */
export interface Loss {
  /**
   * What was lost, in snake_case with the position in the canonical message list, such as `top_k`,
   * `tools[0].strict` or `messages[2].content[1].detail`.
   */
  field: string;
  /** Why, as a phrase for the caller, such as `openai-chat has no such field`. */
  reason: string;
}

/** Kinds of input beside text, by the capability that a model needs for them. */
export type InputKind = "vision" | "audio-input" | "document-input";

/** What a request needs of the model that serves it, beside what it says in parameters. */
export interface RequestNeeds {
  inputs: ReadonlySet<InputKind>;
  /** The effort that was asked for; `none` where reasoning was switched off. */
  effort: string | undefined;
}
