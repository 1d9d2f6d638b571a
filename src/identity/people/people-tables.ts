import type { Generated } from "kysely";
import type { WorkspaceTables } from "../workspaces/workspace-store.ts";

/**
 * Rows of preferences: one for each name, so that two pages that change different ones do not undo
 * each other's changes.
 */
export interface PreferenceTables {
  user_preferences: { user_id: string; name: string; value: string; updated_at_ms: number };
}

/** The most preferences of a person. */
export const preferencesMax = 100;

/**
 * Tables of the sign-in library, whose times are ISO 8601 in UTC and whose booleans are 0 and 1,
 * and of the people's own data.
 */
export interface PeopleTables extends WorkspaceTables, PreferenceTables {
  users: {
    id: string;
    name: string;
    email: string;
    email_verified: number;
    image: string | null;
    operator: number;
    created_at: string;
    updated_at: string;
    blocked_at_ms: number | null;
    last_signed_in_at_ms: number | null;
    two_factor_enabled: Generated<number>;
  };
  user_sessions: {
    id: string;
    token: string;
    user_id: string;
    expires_at: string;
    ip_address: string | null;
    user_agent: string | null;
    workspace_id: string | null;
    created_at: string;
    updated_at: string;
  };
  user_accounts: {
    id: string;
    account_id: string;
    provider_id: string;
    user_id: string;
    password: string | null;
    created_at: string;
    updated_at: string;
  };
  user_links: {
    token_hash: string;
    purpose: string;
    user_id: string;
    email: string;
    by_mail: number;
    created_at_ms: number;
    expires_at_ms: number;
    used_at_ms: number | null;
  };
  two_factors: { id: string; user_id: string; verified: number };
  sign_in_windows: { name: string; started_at_ms: number; ends_at_ms: number; count: number };
  pending_sign_ups: {
    token_hash: string;
    email: string;
    name: string;
    password: string;
    referral_code: string | null;
    created_at_ms: number;
    expires_at_ms: number;
  };
  user_verifications: { id: string; expires_at: string };
  passkeys: { id: string; user_id: string; name: string | null; created_at: string | null };
  organizations: {
    id: string;
    name: string;
    created_at_ms: number;
    second_factor_required: Generated<number>;
  };
  organization_members: {
    organization_id: string;
    user_id: string;
    role: string;
    joined_at_ms: number;
  };
  organization_invitations: {
    id: string;
    organization_id: string;
    email: string;
    role: string;
    token_hash: string;
    inviter_user_id: string;
    created_at_ms: number;
    expires_at_ms: number;
    accepted_at_ms: number | null;
    revoked_at_ms: number | null;
  };
  owner_claims: {
    id: string;
    token_hash: string;
    expires_at_ms: number;
    claimed_at_ms: number | null;
    user_id: string | null;
  };
}
