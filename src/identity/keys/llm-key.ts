import type { Scope } from "./scopes.ts";

/** Rolling windows that a spending limit can be measured over; null is the 30-day window. */
export type LimitReset = "daily" | "weekly" | "monthly" | null;

const windowHours = { daily: 24, weekly: 7 * 24, monthly: 30 * 24 } as const;

/** Length in hours of the window that a limit is measured over. */
export const limitWindowHours = (reset: LimitReset): number => windowHours[reset ?? "monthly"];

/** An LLM key as the gateway knows it; the secret itself is never kept, only its keyed hash. */
export interface LlmKey {
  /** `key_` id; survives rotation, so counters hang on it. */
  id: string;
  /** Keyed hash of the secret, in hexadecimal; changes on rotation. */
  hash: string;
  workspaceId: string;
  name: string;
  /** Masked form of the secret. */
  label: string;
  createdAtMs: number;
  updatedAtMs: number | null;
  expiresAtMs: number | null;
  disabled: boolean;
  /** Spending limit in nano-USD within the window of `limitReset`; null means none. */
  limitNanoUsd: bigint | null;
  limitReset: LimitReset;
  includeByokInLimit: boolean;
  /** Requests a minute; null means the plan's own. */
  rateLimitPerMinute: number | null;
  tokensPerMinute: number | null;
  /** Lower-cased model ids; null means all. */
  allowedModels: readonly string[] | null;
  allowedEndpoints: readonly string[] | null;
  creatorUserId: string;
  /**
   * The secret before the last rotation, while it is still accepted; absent where it was refused at
   * once.
   */
  previous?: { hash: string; untilMs: number };
  /** The key that made this one, within whose limits it stays; absent where no key did. */
  parentKeyId?: string;
  /**
   * The connected app whose access token this key is; absent for keys that people and programs hold
   * themselves.
   */
  connection?: KeyConnection;
}

/**
 * What a person let a connected app do (OAuth 2.0, RFC 6749 section 3.3). Its key carries the
 * limits, the spend and the secret.
 */
export interface KeyConnection {
  /** `con_` id. */
  id: string;
  scopes: readonly Scope[];
  /**
   * End of the current access token; null where it lasts as long as the key. A refresh gives the
   * key another secret.
   */
  tokenExpiresAtMs: number | null;
}

/** Fields of a key that its owner may change later; absent ones stay as they are. */
export type LlmKeyChanges = Partial<
  Pick<
    LlmKey,
    | "name"
    | "disabled"
    | "includeByokInLimit"
    | "limitNanoUsd"
    | "limitReset"
    | "rateLimitPerMinute"
    | "expiresAtMs"
    | "allowedModels"
    | "allowedEndpoints"
    | "tokensPerMinute"
  >
>;

/** First and last characters of a secret, enough to recognise it and too little to use it. */
export const maskSecret = (secret: string, prefix: string): string =>
  `${secret.slice(0, prefix.length + 4)}...${secret.slice(-4)}`;
