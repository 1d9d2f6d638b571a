import type { Extensions } from "./extensions.ts";
import type { Finish } from "./finish-reason.ts";
import type { GatewayFacts } from "./gateway-facts.ts";
import type { LogProbabilities } from "./log-probability.ts";
import type { AssistantPart } from "./message.ts";
import type { MeteredUsage } from "./usage.ts";

/** One of the answers that `n` asked for. */
export interface Choice {
  index: number;
  /** In the order in which they were made. */
  parts: readonly AssistantPart[];
  finish: Finish;
  logProbabilities?: LogProbabilities;
  extensions?: Extensions;
}

/** A whole answer in no one's dialect. */
export interface CanonicalResponse {
  /** The upstream's id. */
  id: string;
  /** The upstream's name of the model. */
  model: string;
  createdAtSeconds: number;
  choices: readonly Choice[];
  /** Absent when the provider sent none. */
  usage?: MeteredUsage;
  serviceTier?: string;
  systemFingerprint?: string;
  gateway?: GatewayFacts;
  extensions?: Extensions;
}
