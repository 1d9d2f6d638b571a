/** The scopes of management keys, as the contract names them. */
export const scopes = [
  "read:llm-keys",
  "write:llm-keys",
  "read:presets",
  "write:presets",
  "read:byok",
  "write:byok",
  "read:credits",
  "read:analytics",
  "read:management-keys",
  "write:management-keys",
  "read:security",
  "write:security",
  "read:hub",
  "write:hub",
  "read:connections",
  "write:connections",
  "inference",
] as const;

/** A permission of a management key, such as `read:llm-keys`. */
export type Scope = (typeof scopes)[number];

/** Returns whether a text names a scope of the contract. */
export const isScope = (value: string): value is Scope =>
  (scopes as readonly string[]).includes(value);

/**
 * Returns the scopes of a credential that stay within others. A write scope beyond them becomes its
 * read scope where that is within.
 */
export const scopesWithin = (own: readonly Scope[], bound: readonly Scope[]): Scope[] => [
  ...new Set(
    own
      .flatMap((scope) => [scope, ...scopes.filter((read) => read === readOf(scope))])
      .filter((scope) => coversScope(bound, scope))
      .filter((scope, _, kept) => !kept.some((other) => readOf(other) === scope)),
  ),
];

/** Returns the read scope that a write scope implies. */
const readOf = (scope: Scope): string | undefined =>
  scope.startsWith("write:") ? `read:${scope.slice(6)}` : undefined;

/** Returns whether granted scopes include a scope; `write:X` implies `read:X`. */
export function coversScope(granted: readonly Scope[], wanted: string): boolean {
  if (granted.some((scope) => scope === wanted)) return true;
  return (
    wanted.startsWith("read:") && granted.some((scope) => scope === `write:${wanted.slice(5)}`)
  );
}
