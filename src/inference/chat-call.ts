import type { LlmKeyCaller } from "../account/keys/caller.ts";

/** One chat request as the spine sees it. */
export interface ChatCall {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** `gen_` id of the record and its hold; has the digits of the trace id. */
  generationId: string;
  caller: LlmKeyCaller;
  /** Monotonic time at which the request was seen, in milliseconds. */
  startedMs: number;
  /** The signal that fires when the client goes away; made when it is asked for. */
  signalOf: (() => AbortSignal) | undefined;
  /** The body as it came. */
  text: string;
  /** The body parsed and checked; only read, never changed. */
  body: Readonly<Record<string, unknown>>;
  /** The caller asked for the charge and the balance after it. */
  wantsBalance: boolean;
  /** Backends named by header, in order. */
  forcedProviders: readonly string[] | undefined;
  /** Told of all tokens that were used, once they are settled; undefined where nobody counts them. */
  tokensUsed: ((total: number) => void) | undefined;
  /** Session that the request belongs to, named in the body or by header; undefined when in neither. */
  sessionId: string | undefined;
  /** Attribution that the caller sent along. */
  origin: string | undefined;
  appTitle: string | undefined;
  /** The caller's `traceparent` header (W3C Trace Context). */
  traceParent: string | undefined;
}

const numberField = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** The output cap that the caller set; undefined when it set none. */
export const maxOutputTokensOf = ({ body }: ChatCall): number | undefined =>
  numberField(body["max_completion_tokens"]) ?? numberField(body["max_tokens"]);

/** How many answers the caller asks for. */
export const choicesOf = ({ body }: ChatCall): number => numberField(body["n"]) ?? 1;

/** Whether the caller wants a stream. */
export const wantsStream = ({ body }: ChatCall): boolean => body["stream"] === true;

/** Parameters of a chat request that providers may or may not support, by their declared names. */
const declaredParameters = [
  "tools", "tool_choice", "response_format", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty",
  "repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "min_p", "reasoning_effort", "reasoning", "max_tokens", "max_completion_tokens",
] as const;

/** Names of the declared parameters that the request sets. */
export const parametersOf = ({ body }: ChatCall): string[] =>
  declaredParameters.filter((name) => body[name] !== undefined && body[name] !== null);
