import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type List, request } from "../lib/api.ts";

/** The person who is signed in, and the workspace that the session works in. */
export interface Session {
  user: { id: string; name: string; email: string; operator: boolean };
  workspace: { id: string; name: string; role: string };
  scopes: readonly string[];
}

/** A workspace that the person may enter. */
export interface Workspace {
  id: string;
  name: string;
  role: string;
}

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: () => request<Session>("/session"), staleTime: 60_000 });
const workspacesQuery = queryOptions({ queryKey: ["workspaces"], queryFn: () => request<List<Workspace>>("/workspaces"), staleTime: 60_000 });

export const useSession = () => useQuery(sessionQuery);
export const useWorkspaces = () => useQuery(workspacesQuery);

/** Whether the session may do what a scope names; what it may not is not shown. */
export function useScope(scope: string): boolean {
  const { data } = useSession();
  const wanted = scope.replace(/^read:/, "write:");
  return data?.scopes.some((held) => held === scope || held === wanted) ?? false;
}

/** Enters another workspace: everything that was read belongs to the one before. */
export function useEnterWorkspace() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => request("/session", { method: "PATCH", body: { workspace_id: id } }),
    onSuccess: () => queries.resetQueries(),
  });
}
