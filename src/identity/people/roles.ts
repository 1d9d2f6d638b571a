import { scopes, type Scope } from "../keys/scopes.ts";

/** The roles of a user in a workspace. In a personal workspace, its user is `owner`. */
export const roles = ["owner", "admin", "member"] as const;

/** A role of a member. */
export type Role = (typeof roles)[number];

/** Returns whether a text from the database names a role. */
export const isRole = (value: string): value is Role =>
  (roles as readonly string[]).includes(value);

/**
 * The scopes of members: the contract's consent bundle "Standard". Credentials that the workspace
 * gives to others (management keys, provider keys) and its security are reserved to admins and
 * owners.
 */
const memberScopes: readonly Scope[] = [
  "read:llm-keys",
  "write:llm-keys",
  "read:presets",
  "write:presets",
  "read:credits",
  "read:analytics",
  "read:byok",
  "read:hub",
  "write:hub",
  "read:connections",
  "write:connections",
  "inference",
];

/** Returns the scopes of a session in a workspace where its user has this role. */
export const scopesOf = (role: Role): readonly Scope[] =>
  role === "member" ? memberScopes : scopes;

/** Returns whether this role may invite people, change their roles and remove them. */
export const managesPeople = (role: Role): boolean => role !== "member";

/** Returns whether one role may grant or remove another: only owners grant and remove ownership. */
export const mayAssign = (own: Role, other: Role): boolean =>
  own === "owner" || (own === "admin" && other !== "owner");
