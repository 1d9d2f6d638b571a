import type { Bodies } from "../../lib/api-types.ts";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request, type Sending } from "../../lib/api.ts";
import {
  type ActivityFilters,
  type Generation,
  explanationAt,
  parametersOf,
} from "../activity/api.ts";

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

const reading = <Answer>(path: string) =>
  queryOptions({ queryKey: ["operator", path], queryFn: () => request<Answer>(path) });

export const overviewQuery = reading<Overview>("/admin/overview");
export const workspacesQuery = (search: string | undefined) =>
  reading<List<Workspace> & { total: number }>(
    `/admin/workspaces${queryOf({ search, limit: 50 })}`,
  );
export const peopleQuery = (search: string | undefined) =>
  reading<List<Person> & { total: number }>(`/admin/users${queryOf({ search, limit: 50 })}`);
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
