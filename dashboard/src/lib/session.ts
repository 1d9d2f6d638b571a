import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Answers, Row } from "./api-types.ts";
import { ApiError, type List, request, sending } from "./api.ts";
import { keepTabWorkspace, tabWorkspace } from "./workspace.ts";

/** The person who is signed in, and the workspace that the session works in. */
type Session = Answers["GET /session"];

/** A workspace that the person may enter. */
export type Workspace = Row<"GET /workspaces">;

/** Reads the session; the tab stays in the workspace that it sees here. */
async function readSession(): Promise<Session> {
  try {
    const session = await request<Session>("/session");
    keepTabWorkspace(session.workspace.id);
    return session;
  } catch (error) {
    // The person is no longer in the workspace of this tab: it goes on in that of the session.
    if (!(error instanceof ApiError) || error.status !== 403 || tabWorkspace() === undefined)
      throw error;
    keepTabWorkspace(undefined);
    return readSession();
  }
}

const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: readSession,
  staleTime: 60_000,
});
const workspacesQuery = queryOptions({
  queryKey: ["workspaces"],
  queryFn: () => request<List<Workspace>>("/workspaces"),
  staleTime: 60_000,
});

export const useSession = () => useQuery(sessionQuery);
export const useWorkspaces = () => useQuery(workspacesQuery);

/** Whether the session may do what a scope names; what it may not is not shown. */
export function useScope(scope: string): boolean {
  const { data } = useSession();
  const wanted = scope.replace(/^read:/, "write:");
  return data?.scopes.some((held) => held === scope || held === wanted) ?? false;
}

/** Goes on in the session's own workspace, where that of this tab is left or gone. */
export function useLeaveWorkspace(): () => Promise<void> {
  const queries = useQueryClient();
  return () => {
    keepTabWorkspace(undefined);
    return queries.resetQueries();
  };
}

/** Enters another workspace: everything that was read belongs to the one before. */
export function useEnterWorkspace() {
  const queries = useQueryClient();
  return useMutation({
    // The session goes along, so that the next tab opens there.
    mutationFn: (id: string) =>
      request("/session", sending("PATCH /session", { workspace_id: id })),
    onSuccess: (_, id) => {
      keepTabWorkspace(id);
      return queries.resetQueries();
    },
  });
}
