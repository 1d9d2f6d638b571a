import { queryOptions } from "@tanstack/react-query";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** An amount that is meant to be enough for a period. */
export interface Budget {
  id: string;
  name: string;
  scope: string;
  subject: string | null;
  period: "daily" | "weekly" | "monthly" | "total";
  /** Where its periods begin. */
  time_zone: string;
  action: "alert" | "block";
  limit: number;
  thresholds: readonly number[];
  emails: readonly string[];
  webhook_url: string | null;
  spent: number;
  period_start: string;
  period_end: string;
}

/** What a new budget is made of. */
export type NewBudget = Pick<
  Budget,
  | "name"
  | "scope"
  | "subject"
  | "period"
  | "action"
  | "limit"
  | "thresholds"
  | "emails"
  | "webhook_url"
> &
  Partial<Pick<Budget, "time_zone">>;

/** A threshold that was reached, with what became of each message. */
export interface Alert {
  id: string;
  budget_id: string;
  threshold: number;
  limit: number;
  spent: number;
  at: string;
  deliveries: readonly {
    id: string;
    channel: string;
    target: string;
    status: string;
    attempts: number;
    last_error: string | null;
  }[];
}

/** A budget with the secret of its webhook, which is shown once. */
export interface MadeBudget {
  webhook_secret: string | null;
  data: Budget;
}

/** What became of a test. */
export interface TestedBudget {
  deliveries: readonly {
    channel: string;
    target: string;
    delivered: boolean;
    error: string | null;
  }[];
}

export const budgetsQuery = queryOptions({
  queryKey: ["budgets"],
  queryFn: () => request<List<Budget>>("/budgets"),
});
export const budgetPagesQuery = pagedQuery<Budget>(["budgets"], "/budgets");
export const alertsQuery = queryOptions({
  queryKey: ["budgets", "alerts"],
  queryFn: () => request<List<Alert>>("/budgets/alerts"),
});

export const createBudget = (body: NewBudget) =>
  request<MadeBudget>("/budgets", sending("POST /budgets", body));
export const changeBudget = ({ id, ...body }: Partial<NewBudget> & { id: string }) =>
  request<Budget>(`/budgets/${id}`, sending("PATCH /budgets/{id}", body));
export const deleteBudget = (id: string) => request(`/budgets/${id}`, { method: "DELETE" });
export const testBudget = (id: string) =>
  request<TestedBudget>(`/budgets/${id}/test`, { method: "POST" });
export const rotateSecret = (id: string) =>
  request<MadeBudget>(`/budgets/${id}/rotate-secret`, { method: "POST" });
