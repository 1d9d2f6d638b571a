/** One token with the logarithm of its probability. */
export interface TokenProbability {
  token: string;
  logprob: number;
  /** UTF-8 bytes of the token; null where it has none. */
  bytes?: readonly number[] | null;
}

/** One token of an answer with its rivals. */
export interface TokenLogProbability extends TokenProbability {
  /** The likeliest candidates at this place. */
  top: readonly TokenProbability[];
}

/** Log probabilities of an answer's tokens, or of those that one stream part adds. */
export interface LogProbabilities {
  content?: readonly TokenLogProbability[];
  refusal?: readonly TokenLogProbability[];
}
