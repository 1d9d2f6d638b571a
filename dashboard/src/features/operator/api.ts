import type { Bodies } from "../../lib/api-types.ts";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request, type Sending } from "../../lib/api.ts";
import type { Usage } from "../usage/api.ts";
import { type ActivityFilters, explanationAt, parametersOf } from "../activity/api.ts";
import type { Generation } from "../activity/latest.ts";

/** Names of the plans. */
type PlanId = NonNullable<Bodies["PATCH /admin/workspaces/{id}"]["plan"]>;

/** Sums of the whole service. */
interface Sums {
  requests: number;
  errors: number;
  cost: number;
}

/** The service at a glance. */
export interface Overview {
  version: string;
  status: string;
  users: { total: number; operators: number; blocked: number };
  workspaces: { total: number; organizations: number; blocked: number };
  upstreams: { routed: number; in_trouble: number };
  usage: Sums;
  today: Sums;
  uncollected: {
    requests: number;
    cost: number;
    data: readonly { workspace_id: string; model: string; requests: number; cost: number }[];
  };
  passed_caps: readonly { provider: string; requests: number; tokens: number; cost: number }[];
}

export interface Workspace {
  id: string;
  name: string;
  plan: PlanId;
  blocked: boolean;
  organization_id: string | null;
  balance: number;
  used: number;
}

export interface Person {
  id: string;
  name: string;
  email: string;
  operator: boolean;
  blocked: boolean;
  last_signed_in_at: string | null;
}

export interface Plan {
  id: PlanId;
  requests_per_minute: number;
  five_hour_requests: number | null;
  monthly_credits: number;
  workspaces: number;
}

export interface Upstream {
  id: string;
  name: string;
  routed: boolean;
  states: readonly string[];
  last_failure_at: string | null;
  last_hour: { requests: number; errors: number; latency_ms: number | null };
  smoke_test: { at: string; outcome: string; message: string | null } | null;
}

interface Trouble {
  id: string;
  requests: number;
  errors: number;
}

export interface Errors {
  requests: number;
  errors: number;
  providers: readonly (Trouble & { attempts: number; failures: number })[];
  models: readonly Trouble[];
  workspaces: readonly Trouble[];
}

export interface Setting {
  key: string;
  value: string;
  source: string;
  variable: string | null;
}

/** Sums of the whole service, by day, model, provider or workspace. */
export interface ServiceUsage {
  from: string;
  to: string;
  data: readonly (Sums & {
    id: string;
    prompt_tokens?: number;
    completion_tokens?: number;
    attempts?: number;
    failures?: number;
  })[];
}

/** A workspace with the number of its keys and members. */
export interface WorkspaceDetails extends Workspace {
  owner_user_id: string | null;
  created_at: string;
  monthly_balance: number;
  topup_balance: number;
  members: number;
  llm_keys: number;
  management_keys: number;
}

/** A person with the ways to sign in, the sessions and the organisations. */
export interface PersonDetails extends Person {
  created_at: string;
  sign_in: { password: boolean; passkeys: number; providers: readonly string[] };
  sessions: readonly { id: string; updated_at: string; user_agent: string | null }[];
  organizations: readonly { id: string; name: string; role: string; workspace_id: string }[];
}

const reading = <Answer>(path: string) =>
  queryOptions({ queryKey: ["operator", path], queryFn: () => request<Answer>(path) });

export const overviewQuery = reading<Overview>("/admin/overview");
export const workspacesQuery = (search: string | undefined) =>
  reading<List<Workspace> & { total: number }>(
    `/admin/workspaces${queryOf({ search, limit: 50 })}`,
  );
export const peopleQuery = (search: string | undefined) =>
  reading<List<Person> & { total: number }>(`/admin/users${queryOf({ search, limit: 50 })}`);
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
export const settingsQuery = reading<List<Setting> & { version: string }>("/admin/settings");

/** A request of any workspace. */
export interface AnyGeneration extends Generation {
  workspace_id: string;
  workspace_name: string | null;
}

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
