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
  last_used_at: string | null;
  parent_key_id?: string;
}

/** What a new key is made of. */
export interface NewKey {
  name: string;
  limit?: number;
  limit_reset?: string;
  expires_at?: string;
}

/** A key with its secret, which is shown once. */
export interface MadeKey {
  key: string;
  data: Key;
}

export const keysQuery = queryOptions({ queryKey: ["keys"], queryFn: () => request<List<Key>>("/keys?include_disabled=true") });
export const createKey = (body: NewKey) => request<MadeKey>("/keys", { method: "POST", body });
export const changeKey = (hash: string, body: Record<string, unknown>) => request(`/keys/${hash}`, { method: "PATCH", body });
export const rotateKey = (hash: string) => request<MadeKey>(`/keys/${hash}/rotate`, { method: "POST", body: {} });
export const deleteKey = (hash: string) => request(`/keys/${hash}`, { method: "DELETE" });
