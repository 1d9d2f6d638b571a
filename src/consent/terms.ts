import type { LimitReset } from "../account/keys/llm-key.ts";
import { isScope, type Scope } from "../account/keys/scopes.ts";

/** What a key or an access token may do that a person approves: what it costs at most, how long, with which models and scopes. */
export interface Terms {
  label: string | null;
  limitNanoUsd: bigint | null;
  limitReset: LimitReset;
  expiresAtMs: number | null;
  /** Lower-cased model ids; null means all. */
  allowedModels: readonly string[] | null;
  scopes: readonly Scope[];
}

/** Terms as the database keeps them. */
export const termsText = ({ limitNanoUsd, ...terms }: Terms): string =>
  JSON.stringify({ ...terms, limitNanoUsd: limitNanoUsd === null ? null : String(limitNanoUsd) });

/** Reads terms that `termsText` wrote. */
export function termsOf(text: string): Terms {
  const read = JSON.parse(text) as Omit<Terms, "limitNanoUsd" | "scopes"> & {
    limitNanoUsd: string | null;
    scopes: string[];
  };
  return {
    ...read,
    limitNanoUsd: read.limitNanoUsd === null ? null : BigInt(read.limitNanoUsd),
    scopes: read.scopes.filter(isScope),
  };
}
