import type { Extensions } from "./dialect-id.ts";

/** Who made a signed or encrypted block; only the maker accepts it back. */
export interface Provenance {
  /** Provider slug. */
  providerId: string;
}

/**
 * One block of thought, either readable (`text`, `summary`), sealed by its maker (`signature` over
 * the text, Messages and Gemini) or unreadable (`encrypted`: redacted thinking, encrypted content).
 * It may be dropped as a whole, but its text and its seal are never changed.
 */
export interface ReasoningPart {
  type: "reasoning";
  /** The thought itself. */
  text?: string;
  /** The maker's summaries of the thought, in order. */
  summary?: readonly string[];
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
  /** The maker's own id of the block, such as `rs_...`. */
  id?: string;
  /** The maker's name for the seal's format, such as `anthropic-claude-v1`. */
  format?: string;
  /**
   * In history: which of its fields the openai-chat client used, so that the same one goes back.
   */
  field?: ReasoningField;
  extensions?: Extensions;
}

/** Fields that chat-shaped servers carry thoughts in. */
export type ReasoningField = "reasoning_content" | "reasoning" | "reasoning_details" | "content";

/** What the request asks of the model's thinking. */
export interface ReasoningRequest {
  /** Effort as the client named it; `none` disables and is never clamped. */
  effort?: string;
  /** Bound on thinking tokens. */
  budgetTokens?: number;
  enabled?: boolean;
  /** Summary style of Responses: auto, concise or detailed. */
  summary?: string;
  /** How Messages shows thoughts: summarized, omitted or updates. */
  display?: string;
  /**
   * How Messages lets the model choose when to think, where thinking is not simply on or off:
   * adaptive or between_tools.
   */
  mode?: string;
  /** True when the model may think but the answer must not show it. */
  exclude?: boolean;
  extensions?: Extensions;
}

/** The effort levels that a model declares. */
export interface ReasoningLevels {
  /** Effort names in ascending order, exactly as the model accepts them. */
  levels: readonly string[];
  default?: string;
}

const sealVersion = "gw1:";

/** A signature or ciphertext with its maker's slug in front, as clients store and replay it. */
export const sealWithProvenance = (seal: string, provenance: Provenance | undefined): string =>
  provenance === undefined ? seal : `${sealVersion}${provenance.providerId}:${seal}`;

/** The reverse of `sealWithProvenance`; without a maker's slug the text is returned as it is. */
export function openProvenance(sealed: string): { seal: string; provenance?: Provenance } {
  if (!sealed.startsWith(sealVersion)) return { seal: sealed };
  const end = sealed.indexOf(":", sealVersion.length);
  if (end < 0) return { seal: sealed };
  return {
    seal: sealed.slice(end + 1),
    provenance: { providerId: sealed.slice(sealVersion.length, end) },
  };
}

/** True when another provider than the named one sealed the block, which would refuse it. */
export const isForeignReasoning = (
  part: { provenance?: Provenance },
  providerId: string,
): boolean => part.provenance !== undefined && part.provenance.providerId !== providerId;

/**
 * True when the block is sealed. An empty signature is one only where its maker is known to
 * write none.
 */
export const isSealedReasoning = ({ signature, encrypted, provenance }: ReasoningPart): boolean =>
  encrypted !== undefined ||
  (signature !== undefined && (signature !== "" || provenance !== undefined));

/**
 * True when the request turns thinking off, by whichever of its two forms; a request that does so
 * has said how much.
 */
export const isReasoningDisabled = (reasoning: ReasoningRequest | undefined): boolean =>
  reasoning !== undefined && (reasoning.effort === "none" || reasoning.enabled === false);
