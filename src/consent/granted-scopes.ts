import { isScope, type Scope } from "../identity/keys/scopes.ts";

const reading = [
  "read:llm-keys",
  "read:presets",
  "read:credits",
  "read:analytics",
  "read:byok",
  "read:hub",
  "read:connections",
  "inference",
] as const;

/** The consent bundles, as the contract names them ("Flows that mint credentials", 4). */
export const bundles = {
  read_only: reading,
  standard: [...reading, "write:llm-keys", "write:presets", "write:hub", "write:connections"],
} as const satisfies Record<string, readonly Scope[]>;

/** The name of a consent bundle. */
export type Bundle = keyof typeof bundles;

/**
 * Every scope that apps can be granted: those of the wider bundle. Management keys, provider keys
 * and security are reserved to people.
 */
export const grantableScopes: readonly Scope[] = bundles.standard;

/**
 * The scope that requests refresh tokens (OpenID Connect Core, section 11). It grants no
 * permission.
 */
export const offlineScope = "offline_access";

/** The permissions of each scope, in words for the person who consents. */
export const scopeWords: Readonly<Partial<Record<Scope, string>>> = {
  inference: "Send requests to models and spend your credits, up to the cap below",
  "read:llm-keys": "See your API keys, without their secrets",
  "write:llm-keys": "Create API keys that share the cap below, and disable or delete any",
  "read:presets": "See presets",
  "write:presets": "Create, change and delete presets",
  "read:credits": "See your credit balance",
  "read:analytics": "See usage and spend",
  "read:byok": "See which provider keys you stored, without their secrets",
  "read:hub": "See prompts, skills and hubs",
  "write:hub": "Publish and change prompts, skills and hubs",
  "read:connections": "See connected apps",
  "write:connections": "Disconnect apps",
};

/** A parsed request for scopes. */
export interface WantedScopes {
  scopes: readonly Scope[];
  /** Whether refresh tokens are requested. */
  offline: boolean;
}

/**
 * Parses a `scope` parameter (RFC 6749, section 3.3). Unknown scopes are dropped; undefined where
 * no known one is left. Without the parameter, every scope that apps can be granted is requested.
 */
export function readScopes(text: string | null | undefined): WantedScopes | undefined {
  if (text === null || text === undefined || text.trim() === "")
    return { scopes: grantableScopes, offline: false };
  const words = new Set(text.trim().split(/\s+/));
  const scopes = grantableScopes.filter((scope) => words.has(scope));
  const offline = words.has(offlineScope);
  if (scopes.length > 0) return { scopes, offline };
  return offline ? { scopes: bundles.read_only, offline } : undefined;
}

/** Returns the bundle that equals a set of scopes; null where none does. */
export function bundleOf(scopes: readonly Scope[]): Bundle | null {
  for (const name of ["read_only", "standard"] as const) {
    const bundle: readonly Scope[] = bundles[name];
    if (bundle.length === scopes.length && bundle.every((scope) => scopes.includes(scope)))
      return name;
  }
  return null;
}

/** Returns the scopes that a person ticked in a form, as far as they were requested. */
export const narrowedScopes = (
  ticked: readonly string[],
  wanted: readonly Scope[],
): readonly Scope[] => wanted.filter((scope) => ticked.filter(isScope).includes(scope));
