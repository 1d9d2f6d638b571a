import type { Extensions } from "./dialect-id.ts";

/** The maker of a signed or encrypted block, which alone accepts it back. */
export interface Provenance {
  /** The provider's slug. */
  providerId: string;
}

/**
 * A block of reasoning: readable (`text`, `summary`), sealed by its maker (`signature` over the
 * text, Messages and Gemini) or unreadable (`encrypted`: redacted thinking, encrypted content). It
 * may be dropped as a whole, but its text and its seal are never changed.
 */
export interface ReasoningPart {
  type: "reasoning";
  /** The reasoning itself. */
  text?: string;
  /** The maker's summaries of the reasoning, in order. */
  summary?: readonly string[];
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
  /** The maker's own id of the block, such as `rs_...`. */
  id?: string;
  /** The maker's name for the seal's format, such as `anthropic-claude-v1`. */
  format?: string;
  /**
   * In history: the field that the openai-chat client used, so that the same one is written back.
   */
  field?: ReasoningField;
  extensions?: Extensions;
}

/** The fields in which chat-like servers carry reasoning. */
export type ReasoningField = "reasoning_content" | "reasoning" | "reasoning_details" | "content";

/** A request's reasoning settings. */
export interface ReasoningRequest {
  /** The effort as the client named it; `none` turns reasoning off and is never clamped. */
  effort?: string;
  /** The limit of reasoning tokens. */
  budgetTokens?: number;
  enabled?: boolean;
  /** The summary style of Responses: auto, concise or detailed. */
  summary?: string;
  /** The form in which Messages shows reasoning: summarized, omitted or updates. */
  display?: string;
  /**
   * The rule by which Messages lets the model choose when to reason, where reasoning is not simply
   * on or off: adaptive or between_tools.
   */
  mode?: string;
  /** Whether the model may reason but the answer must not show it. */
  exclude?: boolean;
  extensions?: Extensions;
}

/** The effort levels that a model declares. */
export interface ReasoningLevels {
  /** Effort names in ascending order, exactly as the model accepts them. */
  levels: readonly string[];
  default?: string;
}

const effortOrder = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Returns the place of an effort among all, from none on; -1 for an unknown one. */
export const effortRank = (level: string): number => effortOrder.indexOf(level);

/** Returns the known efforts that reason, lowest first, of levels in any order. */
export const risingEfforts = (levels: readonly string[]): string[] =>
  levels
    .filter((level) => effortRank(level) > 0)
    .sort((one, other) => effortRank(one) - effortRank(other));

const sealVersion = "gw1:";

/**
 * Returns a signature or ciphertext prefixed with its maker's slug, as clients store and replay it.
 */
export const sealWithProvenance = (seal: string, provenance: Provenance | undefined): string =>
  provenance === undefined ? seal : `${sealVersion}${provenance.providerId}:${seal}`;

/** Reverses `sealWithProvenance`; a text without a maker's slug is returned as it is. */
export function openProvenance(sealed: string): { seal: string; provenance?: Provenance } {
  if (!sealed.startsWith(sealVersion)) return { seal: sealed };
  const end = sealed.indexOf(":", sealVersion.length);
  if (end < 0) return { seal: sealed };
  return {
    seal: sealed.slice(end + 1),
    provenance: { providerId: sealed.slice(sealVersion.length, end) },
  };
}

/**
 * Returns whether another provider than the named one sealed the block, so that the named one would
 * refuse it.
 */
export const isForeignReasoning = (
  part: { provenance?: Provenance },
  providerId: string,
): boolean => part.provenance !== undefined && part.provenance.providerId !== providerId;

/**
 * Returns whether the block is sealed. An empty signature counts as a seal only where its maker is
 * known to write none.
 */
export const isSealedReasoning = ({ signature, encrypted, provenance }: ReasoningPart): boolean =>
  encrypted !== undefined ||
  (signature !== undefined && (signature !== "" || provenance !== undefined));

/** Returns whether the request turns reasoning off, in either of its two forms. */
export const isReasoningDisabled = (reasoning: ReasoningRequest | undefined): boolean =>
  reasoning !== undefined && (reasoning.effort === "none" || reasoning.enabled === false);
