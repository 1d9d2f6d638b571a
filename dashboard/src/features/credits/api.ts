import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { type List, pagedQuery, queryOf, request, sending } from "../../lib/api.ts";

/** The workspace's credits, in USD. */
export type Credits = Answers["GET /credits"];

/** What a top-up costs. */
export type Quote = Answers["GET /credits/quote"];

/** A top-up by card. */
export type TopUp = Row<"GET /credits/top-ups">;

/** Top-ups that are charged without asking again. */
export type Automatic = Answers["GET /credits/automatic"];

/** An invoice or a credit note. */
export type Invoice = Row<"GET /credits/invoices">;

/** A line of the statement. */
export type Transaction = Row<"GET /credits/transactions">;

/** The workspace's referral code, and what came of it. */
export type ReferralProgram = Answers["GET /referrals"];

export const creditsQuery = queryOptions({
  queryKey: ["credits"],
  queryFn: () => request<Credits>("/credits"),
});
export const topUpsQuery = pagedQuery<TopUp>(["credits", "top-ups"], "/credits/top-ups", 20);
export const invoicesQuery = pagedQuery<Invoice>(["credits", "invoices"], "/credits/invoices", 20);
export const automaticQuery = queryOptions({
  queryKey: ["credits", "automatic"],
  queryFn: () => request<Automatic>("/credits/automatic"),
});
export const referralsQuery = queryOptions({
  queryKey: ["credits", "referrals"],
  queryFn: () => request<ReferralProgram>("/referrals"),
});
export const quoteQuery = (amount: string) =>
  queryOptions({
    queryKey: ["credits", "quote", amount],
    queryFn: () => request<Quote>(`/credits/quote${queryOf({ amount })}`),
    enabled: Number(amount) > 0,
  });
export const statementQuery = infiniteQueryOptions({
  queryKey: ["credits", "transactions"],
  initialPageParam: "",
  queryFn: ({ pageParam }) =>
    request<List<Transaction>>(`/credits/transactions${queryOf({ limit: 50, cursor: pageParam })}`),
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const createTopUp = (body: { amount: number; save_card: boolean; return_url: string }) =>
  request<Answers["POST /credits/top-ups"]>(
    "/credits/top-ups",
    sending("POST /credits/top-ups", body),
  );
export const agreeToAutomatic = (body: {
  threshold: number;
  amount: number;
  monthly_limit: number;
  consent: true;
}) => request<Automatic>("/credits/automatic", sending("POST /credits/automatic", body));
export const endAutomatic = () => request<Automatic>("/credits/automatic", { method: "DELETE" });
