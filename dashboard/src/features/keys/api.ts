import { queryOptions } from "@tanstack/react-query";
import { type List, request } from "../../lib/api.ts";

/** An LLM key as the contract has it. */
export interface Key {
  id: string;
  hash: string;
  name: string;
  label: string;
  created_at: string;
  expires_at: string | null;
  disabled: boolean;
  real_usage: number;
  real_usage_monthly: number;
  limit: number | null;
  limit_remaining: number | null;
  limit_reset: "daily" | "weekly" | "monthly" | null;
  include_byok_in_limit: boolean;
  rate_limit: number;
  tpm: number | null;
  allowed_models: readonly string[] | null;
  allowed_endpoints: readonly string[] | null;
  creator_user_id: string;
  last_used_at: string | null;
  parent_key_id?: string;
}

/** What a new key is made of; null takes a bound away from one that is changed. */
export interface KeyFields {
  name: string;
  limit?: number | null;
  limit_reset?: string | null;
  expires_at?: string | null;
  include_byok_in_limit?: boolean;
  rate_limit?: number | null;
  tpm?: number | null;
  allowed_models?: readonly string[] | null;
  allowed_endpoints?: readonly string[] | null;
}

/** A key with its secret, which is shown once. */
export interface MadeKey {
  key: string;
  data: Key;
}

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () => request<List<Key>>("/keys?include_disabled=true"),
});
export const createKey = (body: KeyFields) => request<MadeKey>("/keys", { method: "POST", body });
export const createChild = ({ hash, body }: { hash: string; body: KeyFields }) =>
  request<MadeKey>(`/keys/${hash}/children`, { method: "POST", body });
export const changeKey = (hash: string, body: Partial<KeyFields> & { disabled?: boolean }) =>
  request(`/keys/${hash}`, { method: "PATCH", body });
export const rotateKey = ({ hash, graceSeconds }: { hash: string; graceSeconds: number }) =>
  request<MadeKey>(`/keys/${hash}/rotate`, {
    method: "POST",
    body: { grace_seconds: graceSeconds },
  });
export const deleteKey = (hash: string) => request(`/keys/${hash}`, { method: "DELETE" });
