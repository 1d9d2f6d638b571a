import { queryOptions } from "@tanstack/react-query";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** What a customer may use, and what it pays for it. */
export interface CustomerPlan {
  type: "free" | "prepaid" | "postpaid";
  allowance: number | null;
  cap: number | null;
  per: "day" | "week" | "month";
  markup: number;
  markup_by_model: Readonly<Record<string, number>>;
}

/** What was used: the cost, the customer's price, and the price less the cost. */
interface CustomerUsage {
  requests: number;
  cost: number;
  price: number;
  margin: number;
}

/** An end customer of the workspace. */
export interface Customer {
  id: string;
  external_id: string;
  name: string;
  status: "active" | "exhausted" | "suspended";
  plan: CustomerPlan | null;
  has_own_plan: boolean;
  limit: number | null;
  used: number;
  remaining: number | null;
  billed: number;
  credits: number;
  period_end: string | null;
  usage: CustomerUsage;
  stripe_customer_id: string | null;
  created_at: string;
}

/** What a customer used of a model on a day. */
interface StatementLine extends CustomerUsage {
  day: string;
  model: string;
}

/** What a customer used in a month. */
export interface Statement {
  from: string;
  to: string;
  total: CustomerUsage;
  billed: number;
  data: readonly StatementLine[];
}

/** The plan of a change, without the fields that its type does not have. */
export type WrittenPlan = Pick<CustomerPlan, "type" | "per" | "markup"> & {
  allowance?: number;
  cap?: number | null;
  markup_by_model?: Record<string, number>;
};

const pathOf = (id: string): string => `/customers/${encodeURIComponent(id)}`;

export const customerPagesQuery = pagedQuery<Customer>(["customers"], "/customers");
export const customerQuery = (id: string) =>
  queryOptions({
    queryKey: ["customers", id],
    queryFn: () => request<Customer>(pathOf(id)),
  });
export const statementQuery = (id: string) =>
  queryOptions({
    queryKey: ["customers", id, "statement"],
    queryFn: () => request<Statement>(`${pathOf(id)}/statement`),
  });
export const customerKeysQuery = (id: string) =>
  queryOptions({
    queryKey: ["customers", id, "keys"],
    queryFn: () =>
      request<List<{ id: string; name: string; label: string; disabled: boolean }>>(
        `${pathOf(id)}/keys`,
      ),
  });

/** The path of a month's statement as a table. */
export const statementCsvPath = (id: string): string => `${pathOf(id)}/statement?format=csv`;

export const createCustomer = (body: {
  external_id: string;
  name?: string;
  plan?: WrittenPlan | null;
  stripe_customer_id?: string | null;
}) => request<Customer>("/customers", sending("POST /customers", body));

export const changeCustomer = ({
  id,
  ...body
}: {
  id: string;
  name?: string;
  plan?: WrittenPlan | null;
  suspended?: boolean;
  stripe_customer_id?: string | null;
}) => request<Customer>(pathOf(id), sending("PATCH /customers/{id}", body));

export const addCredits = ({ id, ...body }: { id: string; amount: number; note?: string }) =>
  request<{ customer: Customer }>(
    `${pathOf(id)}/credits`,
    sending("POST /customers/{id}/credits", body),
  );

export const createKey = ({ id, ...body }: { id: string; name: string }) =>
  request<{ key: string }>(`${pathOf(id)}/keys`, sending("POST /customers/{id}/keys", body));

export const createLink = ({ id, ...body }: { id: string; expires_in: number }) =>
  request<{ url: string; expires_at: string }>(
    `${pathOf(id)}/balance-link`,
    sending("POST /customers/{id}/balance-link", body),
  );

export const removeCustomer = (id: string) =>
  request<{ deleted: true }>(pathOf(id), { method: "DELETE" });
