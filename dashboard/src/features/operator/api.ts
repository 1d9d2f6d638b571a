import type { Answers, Row } from "../../lib/api-types.ts";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request, type Sending } from "../../lib/api.ts";
import type { Usage } from "../usage/api.ts";
import { type ActivityFilters, explanationAt, parametersOf } from "../activity/api.ts";

/** The service at a glance. */
export type Overview = Answers["GET /admin/overview"];

export type Workspace = Row<"GET /admin/workspaces">;

export type Person = Row<"GET /admin/users">;

export type Plan = Row<"GET /admin/plans">;

export type Upstream = Row<"GET /admin/upstreams">;

export type Errors = Answers["GET /admin/errors"];

/** Sums of the whole service, by day, model, provider or workspace. */
export type ServiceUsage = Answers["GET /admin/usage"];

/** A workspace with the number of its keys and members. */
export type WorkspaceDetails = Answers["GET /admin/workspaces/{id}"];

/** A person with the ways to sign in, the sessions and the organisations. */
export type PersonDetails = Answers["GET /admin/users/{id}"];

const reading = <Answer>(path: string) =>
  queryOptions({ queryKey: ["operator", path], queryFn: () => request<Answer>(path) });

export const overviewQuery = reading<Overview>("/admin/overview");
export const workspacesQuery = (search: string | undefined) =>
  reading<Answers["GET /admin/workspaces"]>(`/admin/workspaces${queryOf({ search, limit: 50 })}`);
export const peopleQuery = (search: string | undefined) =>
  reading<Answers["GET /admin/users"]>(`/admin/users${queryOf({ search, limit: 50 })}`);
export const serviceUsageQuery = (group: "day" | "model" | "provider" | "workspace") =>
  reading<ServiceUsage>(`/admin/usage${queryOf({ days: 30, group_by: group })}`);
export const workspaceQuery = (id: string) =>
  reading<WorkspaceDetails>(`/admin/workspaces/${encodeURIComponent(id)}`);
export const personQuery = (id: string) =>
  reading<PersonDetails>(`/admin/users/${encodeURIComponent(id)}`);

const dayMs = 86_400_000;

/** The usage of a workspace, or of a person's keys, by model over the last 30 days. */
export function usageOfQuery(kind: "workspaces" | "users", id: string) {
  const toMs = Math.ceil(Date.now() / dayMs) * dayMs;
  return reading<Usage>(
    `/admin/${kind}/${encodeURIComponent(id)}/usage${queryOf({
      from: new Date(toMs - 30 * dayMs).toISOString(),
      to: new Date(toMs).toISOString(),
      group_by: "model",
    })}`,
  );
}
export const plansQuery = reading<List<Plan>>("/admin/plans");
export const upstreamsQuery = reading<List<Upstream>>("/admin/upstreams");
export const errorsQuery = reading<Errors>("/admin/errors?days=7");
export const settingsQuery = reading<Answers["GET /admin/settings"]>("/admin/settings");

/** A request of any workspace. */
export type AnyGeneration = Row<"GET /admin/generations">;

export const requestsQuery = (filters: ActivityFilters) =>
  infiniteQueryOptions({
    queryKey: ["operator", "generations", filters],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      request<List<AnyGeneration>>(
        `/admin/generations${queryOf({ ...parametersOf(filters), limit: 50, after: pageParam })}`,
        { signal },
      ),
    getNextPageParam: (page) => (page.has_more ? (page.next_cursor ?? undefined) : undefined),
  });

export const anyExplanationQuery = (id: string) =>
  explanationAt(`/admin/generations/${encodeURIComponent(id)}`);

/** A change that an operator makes; what was read before is read again. */
export const change = ({ path, ...sent }: Sending & { path: string }) => request(path, sent);
