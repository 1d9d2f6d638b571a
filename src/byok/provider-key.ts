/** The place where a record was created (contract: set once at creation). */
export const keySources = ["cli", "dashboard", "api"] as const;

/** One of `keySources`. */
type KeySource = (typeof keySources)[number];

/** The rolling windows of a quota; null means that it never resets. */
export type QuotaReset = "daily" | "weekly" | "monthly" | null;

/** The limit of a key's use, in list prices of what is sent through it. */
export interface Quota {
  limitNano: bigint;
  reset: QuotaReset;
}

/** The reason why a donated key does not serve others at present. */
export type PauseReason =
  /** The provider refused it; it resumes after its next successful probe. */
  | "credential"
  /** Its owner paused it. */
  | "owner";

/** The donation of a key to all workspaces. */
export interface Donation {
  donatedAtMs: number;
  /** Nano-USD at list price that others may use within 24 hours; null means no limit. */
  dailyLimitNano: bigint | null;
  paused: PauseReason | null;
}

/** A caller's own key at a provider, with the key itself sealed. */
export interface ProviderKey {
  /** A `byok_` id; survives rotation. */
  id: string;
  workspaceId: string;
  providerId: string;
  label: string;
  /** The masked form of the key. */
  preview: string;
  /** The key, sealed by `KeyVault`. */
  sealed: string;
  enabled: boolean;
  source: KeySource;
  quota: Quota | null;
  donation: Donation | null;
  createdAtMs: number;
  updatedAtMs: number | null;
}

const windowHours = { daily: 24, weekly: 7 * 24, monthly: 30 * 24 } as const;

/** Returns the hours of a quota's window; undefined where it has none. */
export const quotaWindowHours = (reset: QuotaReset): number | undefined =>
  reset === null ? undefined : windowHours[reset];

/**
 * Returns the first four characters, four asterisks and the last three (contract: `key_preview`).
 */
export const previewOf = (secret: string): string => `${secret.slice(0, 4)}****${secret.slice(-3)}`;
