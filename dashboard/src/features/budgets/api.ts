import { queryOptions } from "@tanstack/react-query";
import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** An amount that is meant to be enough for a period. */
export type Budget = Row<"GET /budgets">;

/** What a new budget is made of. */
export type NewBudget = Bodies["POST /budgets"];

/** A threshold that was reached, with what became of each message. */
export type Alert = Row<"GET /budgets/alerts">;

/** A budget with the secret of its webhook, which is shown once. */
export type MadeBudget = Answers["POST /budgets"];

/** What became of a test. */
export type TestedBudget = Answers["POST /budgets/{id}/test"];

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
