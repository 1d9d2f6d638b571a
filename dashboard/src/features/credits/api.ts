import { queryOptions } from "@tanstack/react-query";
import { type List, request } from "../../lib/api.ts";

/** The workspace's credits, in USD. */
export interface Credits {
  balance: number;
  monthly_balance: number;
  topup_balance: number;
  used: number;
  today_cost: number;
}

/** A top-up by card. */
export interface TopUp {
  id: string;
  status: string;
  amount: number;
  fee?: number;
  total?: number;
  created_at: string;
  url?: string | null;
}

export const creditsQuery = queryOptions({ queryKey: ["credits"], queryFn: () => request<Credits>("/credits") });
export const topUpsQuery = queryOptions({ queryKey: ["top-ups"], queryFn: () => request<List<TopUp>>("/credits/top-ups") });

export const createTopUp = (amount: number) => request<TopUp>("/credits/top-ups", { method: "POST", body: { amount } });
