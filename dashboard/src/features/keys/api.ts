import type { Bodies } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, request, sending } from "../../lib/api.ts";

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
  allowed_tools: readonly string[] | null;
  creator_user_id: string;
  last_used_at: string | null;
  /** Whether the key has an operator's rights. */
  operator: boolean;
  parent_key_id?: string;
}

/** What a new key is made of; null takes a bound away from one that is changed. */
export type KeyFields = Bodies["POST /keys"] & Bodies["PATCH /keys/{hash}"];

/** A key with its secret, which is shown once. */
export interface MadeKey {
  key: string;
  data: Key;
}

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () => request<List<Key>>("/keys?include_disabled=true"),
});
export const createKey = (body: KeyFields) =>
  request<MadeKey>("/keys", sending("POST /keys", body));
export const createChild = ({ hash, body }: { hash: string; body: KeyFields }) =>
  request<MadeKey>(`/keys/${hash}/children`, sending("POST /keys/{hash}/children", body));
export const changeKey = (hash: string, body: Bodies["PATCH /keys/{hash}"]) =>
  request(`/keys/${hash}`, sending("PATCH /keys/{hash}", body));
export const rotateKey = ({ hash, graceSeconds }: { hash: string; graceSeconds: number }) =>
  request<MadeKey>(
    `/keys/${hash}/rotate`,
    sending("POST /keys/{hash}/rotate", { grace_seconds: graceSeconds }),
  );
export const deleteKey = (hash: string) => request(`/keys/${hash}`, { method: "DELETE" });
