import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, request, sending } from "../../lib/api.ts";

/** An LLM key as the contract has it. */
export type Key = Row<"GET /keys">;

/** What a new key is made of; null takes a bound away from one that is changed. */
export type KeyFields = Bodies["POST /keys"] & Bodies["PATCH /keys/{hash}"];

/** A key with its secret, which is shown once. */
export type MadeKey = Answers["POST /keys"];

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
