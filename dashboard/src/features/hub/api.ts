import { queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request } from "../../lib/api.ts";

/** A prompt, a skill or a knowledge document, as a list has it. */
export interface Entry {
  id: string;
  object: string;
  title?: string;
  name?: string;
  description: string | null;
  tags: readonly string[];
  visibility: string;
  version: number;
  stars: number;
  starred: boolean;
  status?: string | null;
  body?: string | null;
  created_by: string | null;
  workspace_id?: string;
}

/** A collection of entries. */
export interface Hub {
  slug: string;
  name: string;
  description: string | null;
  visibility: string;
  item_count: number;
}

export type Kind = "prompts" | "skills";
export type Scope = "workspace" | "public" | "starred";

export const entriesQuery = (
  kind: Kind,
  { scope, search }: { scope: Scope; search: string | undefined },
) =>
  queryOptions({
    queryKey: ["hub", kind, scope, search],
    queryFn: () => request<List<Entry>>(`/${kind}${queryOf({ scope, search, limit: 50 })}`),
  });
export const entryQuery = (kind: Kind, id: string) =>
  queryOptions({
    queryKey: ["hub", kind, "one", id],
    queryFn: () => request<Entry>(`/${kind}/${encodeURIComponent(id)}`),
  });
export const hubsQuery = queryOptions({
  queryKey: ["hub", "hubs"],
  queryFn: () => request<List<Hub>>("/hubs?limit=50"),
});
export const hubItemsQuery = (slug: string) =>
  queryOptions({
    queryKey: ["hub", "items", slug],
    queryFn: () => request<List<Entry>>(`/hubs/${encodeURIComponent(slug)}/items?limit=50`),
  });
export const reviewsQuery = queryOptions({
  queryKey: ["hub", "reviews"],
  queryFn: () => request<List<Entry>>("/admin/prompts"),
});

/** A change of the hub. */
export const change = ({ method, path, body }: { method: string; path: string; body?: unknown }) =>
  request(path, { method, body });
