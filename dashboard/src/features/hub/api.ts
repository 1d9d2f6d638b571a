import { say } from "../../ui/toast.ts";
import { useMutation, useQueryClient, queryOptions } from "@tanstack/react-query";
import type { Row } from "../../lib/api-types.ts";
import { type List, pagedQuery, request, type Sending } from "../../lib/api.ts";
import { useScope, useSession } from "../../lib/session.ts";

/** A prompt, a skill, a knowledge document or a plugin, as a list has it. */
export interface Entry {
  id: string;
  object: string;
  title?: string;
  name?: string;
  description: string | null;
  category?: string | null;
  tags: readonly string[];
  /** Slug of the collection that holds it. */
  hub: string | null;
  visibility: string;
  version: number;
  stars: number;
  starred: boolean;
  status?: string | null;
  body?: string | null;
  created_by: string | null;
  workspace_id?: string;
}

/** A version of an entry. */
export type Version = Row<"GET /hubs/{slug}/items/{item}/versions">;

/** A collection of entries. */
export type Hub = Row<"GET /hubs">;

export type Kind = "prompts" | "skills";
export type Scope = "workspace" | "public" | "starred";

/** Who sees a record, for people. */
export const visibilities = [
  ["private", "Only you"],
  ["workspace", "This workspace"],
  ["public", "Everybody, prompts after a review"],
] as const;

/** Who sees a record, as requests say it. */
export const visibilityOf = (text: string): (typeof visibilities)[number][0] =>
  visibilities.find(([each]) => each === text)?.[0] ?? "workspace";

export const nameOf = ({ title, name, id }: Entry): string => title ?? name ?? id;

const part = encodeURIComponent;
/** Where a collection is in the API. */
export const hubPath = (slug: string): string => `/hubs/${part(slug)}`;
/** Where an item of a collection is. */
export const itemPath = (slug: string, id: string): string => `${hubPath(slug)}/items/${part(id)}`;
/** Where a prompt or a skill is, in a collection or beside them. */
export const entryPath = (kind: Kind, id: string): string => `/${kind}/${part(id)}`;
/** Where an entry is changed: prompts and skills have fields of their own there. */
export function pathOf({ object, id, hub }: Entry): string {
  if (object === "prompt") return entryPath("prompts", id);
  if (object === "skill") return entryPath("skills", id);
  return itemPath(hub ?? "", id);
}

export const entriesQuery = (
  kind: Kind,
  { scope, search }: { scope: Scope; search: string | undefined },
) => pagedQuery<Entry>(["hub", kind], `/${kind}`, 50, { scope, search });
export const entryQuery = (path: string) =>
  queryOptions({ queryKey: ["hub", "one", path], queryFn: () => request<Entry>(path) });
export const versionsQuery = (path: string) =>
  queryOptions({
    queryKey: ["hub", "versions", path],
    queryFn: () => request<List<Version>>(`${path}/versions`),
  });
export const hubsQuery = (filter: { scope: string; search: string | undefined }) =>
  pagedQuery<Hub>(["hub", "hubs"], "/hubs", 50, filter);
export const hubQuery = (slug: string) =>
  queryOptions({
    queryKey: ["hub", "hub", hubPath(slug)],
    queryFn: () => request<Hub>(hubPath(slug)),
  });
export const hubItemsQuery = (slug: string) =>
  pagedQuery<Entry>(["hub", "items", hubPath(slug)], `${hubPath(slug)}/items`);
export const reviewsQuery = pagedQuery<Entry>(["hub", "reviews"], "/admin/prompts", 20);

/** Whether a query reads what stands at a path, by itself or in its collection. */
function readsPath(queryKey: readonly unknown[], path: string): boolean {
  const gone = path.split("/").at(-1) ?? "";
  return queryKey.some(
    (part) => typeof part === "string" && part.startsWith("/") && part.split("/").includes(gone),
  );
}

/** Changes the hub, and reads again what is shown of it; what was deleted is not asked for. */
export function useChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ path, ...sent }: Sending & { path: string }) => request<Entry & Hub>(path, sent),
    onSuccess(_, { method, path }) {
      const isGone = method === "DELETE";
      if (isGone) say("Deleted from the hub");
      return queries.invalidateQueries({
        queryKey: ["hub"],
        predicate: ({ queryKey }) => !isGone || !readsPath(queryKey, path),
      });
    },
  });
}

/** Says whether the person may change a record: its author, and who administers the workspace. */
export function useMayChange(): (record: { created_by: string | null }) => boolean {
  const { data: session } = useSession();
  const mayWrite = useScope("write:hub");
  return ({ created_by: author }) =>
    mayWrite &&
    author !== null &&
    (author === session?.user.id || session?.workspace.role !== "member");
}
