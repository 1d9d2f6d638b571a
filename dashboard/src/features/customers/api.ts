import { queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** What a customer may use, and what it pays for it. */
export type CustomerPlan = NonNullable<Customer["plan"]>;

/** An end customer of the workspace. */
export type Customer = Row<"GET /customers">;

/** What a customer used in a month. */
export type Statement = Answers["GET /customers/{id}/statement"];

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
