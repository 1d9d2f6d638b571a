import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { changePreferences, preferencesQuery } from "../features/account/preferences.ts";
import { type Alert, alertsQuery } from "../features/budgets/api.ts";
import { useScope, useSession } from "../lib/session.ts";
import style from "./shell.module.css";

/** The preference that has the moment of the newest alert seen, by workspace. */
const preference = "alerts.seen";
const workspacesMax = 20;

/** The moments that are kept, whatever a client may have kept there. */
const seenOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(Object(value) as Record<string, unknown>).flatMap(([id, at]) =>
      typeof at === "string" ? [[id, at]] : [],
    ),
  );

const newestOf = (alerts: readonly Alert[]): string | undefined =>
  alerts
    .map(({ at }) => at)
    .sort()
    .at(-1);

/** What budgets have reached since the person last followed the bell. */
function useUnseen(workspaceId: string) {
  const queries = useQueryClient();
  // No timer: an alert is looked for with each load, and when the person comes back to the tab.
  const { data: alerts } = useQuery({
    ...alertsQuery,
    staleTime: 60_000,
    refetchOnWindowFocus: true,
  });
  const { data: preferences } = useQuery(preferencesQuery);
  const seen = seenOf(preferences?.[preference]);
  const newest = newestOf(alerts?.data ?? []);
  const keep = useMutation({
    mutationFn: (at: string) => {
      const { [workspaceId]: _, ...others } = seen;
      const kept = Object.entries(others).slice(1 - workspacesMax);
      return changePreferences({ [preference]: Object.fromEntries([...kept, [workspaceId, at]]) });
    },
    onSuccess: (kept) => queries.setQueryData(preferencesQuery.queryKey, kept),
  });
  const count =
    preferences === undefined
      ? 0
      : (alerts?.data ?? []).filter(({ at }) => at > (seen[workspaceId] ?? "")).length;
  const follow = (): void => {
    if (newest !== undefined && count > 0) keep.mutate(newest);
  };
  return { count, follow };
}

function Bell({ workspaceId }: { workspaceId: string }) {
  const { count, follow } = useUnseen(workspaceId);
  return (
    <Link
      to="/budgets"
      className={style.bell}
      onClick={follow}
      aria-label={count === 0 ? "Alerts" : `Alerts: ${count} new`}
    >
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path
          d="M6 9a6 6 0 0 1 12 0c0 6 2 7 2 8H4c0-1 2-2 2-8M10 20a2 2 0 0 0 4 0"
          fill="none"
          stroke="currentColor"
          strokeWidth="2"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      </svg>
      {count === 0 ? null : <span className={style.unseen}>{count}</span>}
    </Link>
  );
}

/** Leads to the alerts of budgets, and says how many the person has not seen. */
export function AlertBell() {
  const { data: session } = useSession();
  const mayRead = useScope("read:analytics");
  // Its place is kept for those who see none.
  return session !== undefined && mayRead ? (
    <Bell workspaceId={session.workspace.id} />
  ) : (
    <span className={style.bell} />
  );
}
