import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type List, pagedQuery, queryOf, request, sending } from "../../lib/api.ts";

/** The workspace's credits, in USD. */
export interface Credits {
  balance: number;
  monthly_balance: number;
  topup_balance: number;
  used: number;
  today_cost: number;
}

/** What a top-up costs. */
export interface Quote {
  amount: number;
  fee: number;
  total: number;
}

/** A top-up by card. */
export interface TopUp extends Quote {
  id: string;
  kind: "checkout" | "automatic";
  status: "open" | "paid" | "failed" | "expired";
  failure: string | null;
  created_at: string;
  url?: string;
}

/** Top-ups that are charged without asking again. */
export interface Automatic {
  status: "on" | "off" | "stopped";
  stopped_reason: string | null;
  threshold: number | null;
  amount: number | null;
  total: number | null;
  monthly_limit: number | null;
  charged_this_month: number;
  card: string | null;
}

/** An invoice or a credit note. */
export interface Invoice extends Quote {
  id: string;
  object: "invoice" | "credit_note";
  issued_at: string;
}

/** A line of the statement. */
export interface Transaction {
  id: string;
  at: string;
  kind: "charges" | "topup" | "grant" | "bootstrap" | "refund" | "expiry";
  bucket: "monthly" | "topup" | null;
  amount: number;
  balance: number;
  requests: number | null;
  reference: string | null;
}

/** The workspace's referral code, and what came of it. */
export interface ReferralProgram {
  url: string;
  after: "first_top_up" | "sign_up";
  referrer_usd: number;
  referred_usd: number;
  maximum: number;
  signed_up: number;
  pending: number;
  rewarded: number;
  earned: number;
  referred: { status: "pending" | "rewarded"; earned: number } | null;
}

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
  request<TopUp>("/credits/top-ups", sending("POST /credits/top-ups", body));
export const agreeToAutomatic = (body: {
  threshold: number;
  amount: number;
  monthly_limit: number;
  consent: true;
}) => request<Automatic>("/credits/automatic", sending("POST /credits/automatic", body));
export const endAutomatic = () => request<Automatic>("/credits/automatic", { method: "DELETE" });
