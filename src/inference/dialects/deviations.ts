import type { OutputCapName } from "../../platform/kernel/models/preset-settings.ts";
import type { ReasoningField } from "../canonical/reasoning.ts";

/**
 * Named deviations of an upstream from its dialect. Absent means that it behaves as the dialect
 * says.
 */
export interface DialectDeviations {
  /**
   * The name of the output cap that the upstream knows. Absent means `max_tokens`, which nearly
   * every server obeys: a server ignores a cap under a name that it does not know. `either` leaves
   * the client's own name.
   */
  maxTokensField?: OutputCapName | "either";
  /**
   * Whether the upstream answers 400 to `stream_options`; usage then comes by itself or not at all.
   */
  noStreamOptions?: boolean;
  /**
   * The field in which the upstream expects earlier reasoning to be replayed; absent means that it
   * refuses it.
   */
  reasoningReplay?: ReasoningField;
  /** Whether the upstream takes OpenRouter's `reasoning` object in place of `reasoning_effort`. */
  reasoningObject?: boolean;
  /** The cache marker that the upstream knows on parts; absent means none. */
  cacheMarkers?: "cache_control" | "prompt_cache_breakpoint";
  /** Whether the upstream knows custom tools; absent means that they are wrapped in functions. */
  customTools?: boolean;
  /**
   * Whether the upstream knows the role `developer`; absent means that such messages are sent as
   * `system`.
   */
  developerRole?: boolean;
  /**
   * Whether the upstream accepts a system message only at the head; later ones are sent as the
   * user's text.
   */
  systemOnlyFirst?: boolean;
  /** Request fields that the upstream answers with 400, by wire name. */
  unsupportedFields?: readonly string[];
  /**
   * Whether the upstream holds conversations that requests continue (`thread` of Messages); absent
   * means that such requests are refused, since an upstream that ignores the field would answer
   * without the conversation.
   */
  messageThreads?: boolean;
  /** The most characters of `user`; absent means any number. */
  userLengthMax?: number;
  /**
   * The ids of calls that the upstream takes: nine letters and digits, or at most OpenAI's 40
   * characters on chat and 64 on Responses; absent means any.
   */
  callIds?: "nine-characters" | "openai";
  /** Whether a user's turn may not follow the result of a call directly, for Mistral's models or all. */
  answersResults?: boolean | "mistral";
  /** Whether the upstream answers 400 to the role `developer` from its own clients too. */
  refusesDeveloper?: boolean;
  /** Whether the upstream answers 400 to pictures, files and recordings anywhere in a conversation. */
  readsTextAlone?: boolean;
  /** The models there that do read pictures in a user's turn, by wire name. */
  readsPictures?: RegExp;
  /** Members of messages that the upstream answers with 400. */
  unsupportedMessageFields?: readonly string[];
  /** Members of functions that the upstream answers with 400. */
  unsupportedToolFields?: readonly string[];
  /** Whether the upstream validates schemas of functions as Moonshot does. */
  plainSchemas?: boolean;
  /** Whether the upstream takes a required call, and no call of one function by its name. */
  unnamedToolChoice?: boolean;
  /** The models that take functions on chat only without reasoning, by wire name. */
  unreasonedFunctions?: RegExp;
  /** The models that take the effort `max` in another dialect alone, by wire name. */
  maxEffortElsewhere?: RegExp;
  /** Whether the upstream answers 400 to `reasoning.summary` of Responses. */
  noReasoningSummary?: boolean;
  /** Whether Gemini searches there only where it is offered no functions. */
  searchesAlone?: boolean;
  /** Whether the upstream answers 400 to assistant's turns without text and calls. */
  refusesEmptyTurns?: boolean;
  /** Whether the upstream knows JSON, but no schema, as the form of an answer. */
  jsonWithoutSchema?: boolean;
  /** Whether the upstream answers 400 to a form of JSON where functions are offered. */
  formatWithoutFunctions?: boolean;
  /** The highest temperature that the upstream takes; absent means OpenAI's. */
  temperatureMax?: number;
  /** Whether the upstream answers 400 where a turn of the model's that is no `prefix` comes last. */
  refusesBegunAnswers?: boolean;
  /** The smallest output cap that the upstream takes for models of these names. */
  leastCap?: { models: RegExp; tokens: number };
  /**
   * Whether a model that reasons requires reasoning in every turn with calls, in the field of
   * `reasoningReplay`.
   */
  reasoningBesideCalls?: boolean;
  /**
   * The upstream turns reasoning off by `thinking`, and passes over the effort `none`; models of
   * these names cannot turn it off, and are asked for the least effort that they know.
   */
  thinkingSwitch?: { alwaysReasons?: RegExp; leastEffort?: string };
  /**
   * Whether a model that reasons cannot be forced to call a tool. Reasoning is then turned off, or
   * the model chooses itself where it cannot be.
   */
  unforcedWhileReasoning?: boolean;
}

/** Request fields that a model answers with 400, by their names in chat. */
export interface RefusedParameters {
  always: readonly string[];
  /** Refused unless the request turns reasoning off. */
  whileReasoning: readonly string[];
}
