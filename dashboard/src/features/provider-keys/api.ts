import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, request, sending } from "../../lib/api.ts";

/** A caller's own key at a provider. */
export type ProviderKey = ProviderGroup["keys"][number];

/** The keys of one provider. */
export type ProviderGroup = Row<"GET /auth/byok">;

/** What a provider said to a key. */
export type KeyTest = Answers["POST /auth/byok/test"];

/** A provider of the catalog. */
export type Provider = Row<"GET /providers">;

export const providerKeysQuery = queryOptions({
  queryKey: ["provider-keys"],
  queryFn: () => request<List<ProviderGroup>>("/auth/byok"),
});
export const providersQuery = queryOptions({
  queryKey: ["providers"],
  queryFn: () => request<List<Provider>>("/providers"),
  staleTime: 300_000,
});

export const createProviderKey = (body: Bodies["POST /auth/byok"]) =>
  request<ProviderKey>("/auth/byok", sending("POST /auth/byok", body));
export const changeProviderKey = ({
  id,
  ...body
}: Bodies["PATCH /auth/byok/keys/{key_id}"] & { id: string }) =>
  request<ProviderKey>(`/auth/byok/keys/${id}`, sending("PATCH /auth/byok/keys/{key_id}", body));
export const deleteProviderKey = (id: string) =>
  request(`/auth/byok/keys/${id}`, { method: "DELETE" });
export const testNewKey = (body: { provider_id: string; api_key: string }) =>
  request<KeyTest>("/auth/byok/test", sending("POST /auth/byok/test", body));
export const testStoredKey = (id: string) =>
  request<KeyTest>(`/auth/byok/keys/${id}/test`, { method: "POST" });
export const donateKey = (body: { key_id: string; consent: true; daily_limit?: number }) =>
  request<ProviderKey>("/byok/donated", sending("POST /byok/donated", body));
export const changeDonation = ({
  id,
  ...body
}: {
  id: string;
  paused?: boolean;
  daily_limit?: number | null;
}) => request<ProviderKey>(`/byok/donated/${id}`, sending("PATCH /byok/donated/{id}", body));
export const withdrawKey = (id: string) =>
  request<ProviderKey>(`/byok/donated/${id}`, { method: "DELETE" });
