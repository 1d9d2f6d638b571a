import { scopes, type Scope } from "../keys/scopes.ts";

/** What somebody is in a workspace; whoever owns a personal workspace is its owner. */
export const roles = ["owner", "admin", "member"] as const;

/** One of the roles. */
export type Role = (typeof roles)[number];

/** Whether a text from the database names a role. */
export const isRole = (value: string): value is Role =>
  (roles as readonly string[]).includes(value);

/**
 * What members may do: the contract's consent bundle "Standard". Credentials of the workspace for others
 * (management keys, provider keys) and its security are for admins and owners.
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

/** The scopes that a session has in a workspace where its user has this role. */
export const scopesOf = (role: Role): readonly Scope[] =>
  role === "member" ? memberScopes : scopes;

/** Whether this role may invite people, change their roles and remove them. */
export const managesPeople = (role: Role): boolean => role !== "member";

/** Whether this role may give or take that one: only owners make and unmake owners. */
export const mayAssign = (own: Role, other: Role): boolean =>
  own === "owner" || (own === "admin" && other !== "owner");
