/** Who made a record (contract: set once at creation). */
export const keySources = ["cli", "dashboard", "api"] as const;

/** One of them. */
export type KeySource = (typeof keySources)[number];

/** Rolling windows of a quota; null means that it never starts anew. */
export type QuotaReset = "daily" | "weekly" | "monthly" | null;

/** What a key may be used for, in list prices of what is asked through it. */
export interface Quota {
  limitNano: bigint;
  reset: QuotaReset;
}

/** Why a donated key does not serve others for now. */
export type PauseReason =
  /** The provider refused it: it resumes after its next successful probe. */
  | "credential"
  /** Its owner wants it so. */
  | "owner";

/** That a key is shared with everybody. */
export interface Donation {
  donatedAtMs: number;
  /** Nano-USD of list price that others may use within 24 hours; null means no bound. */
  dailyLimitNano: bigint | null;
  paused: PauseReason | null;
}

/** A caller's own key at a provider, as the gateway knows it: the key itself stays sealed. */
export interface ProviderKey {
  /** `byok_` id; survives rotation. */
  id: string;
  workspaceId: string;
  providerId: string;
  label: string;
  /** Masked form of the key. */
  preview: string;
  /** The key as `KeyVault` has sealed it. */
  sealed: string;
  enabled: boolean;
  source: KeySource;
  quota: Quota | null;
  donation: Donation | null;
  createdAtMs: number;
  updatedAtMs: number | null;
}

const windowHours = { daily: 24, weekly: 7 * 24, monthly: 30 * 24 } as const;

/** Hours of a quota's window; undefined where it has none. */
export const quotaWindowHours = (reset: QuotaReset): number | undefined =>
  reset === null ? undefined : windowHours[reset];

/** First four characters, four asterisks, last three (contract: `key_preview`). */
export const previewOf = (secret: string): string => `${secret.slice(0, 4)}****${secret.slice(-3)}`;
