import type { PlanId } from "../workspaces/plan.ts";
import { starterWindow, type Quota } from "./quota.ts";

/** A cap on requests in a sliding window of 60 seconds. */
export interface RateTier {
  /** What callers read as `X-RateLimit-Tier`. */
  id:
    | "ip"
    | "free-model"
    | "go"
    | "paid-model"
    | "pro"
    | "power"
    | "enterprise"
    | "decision"
    | "mcp"
    | "mcp-ip";
  perMinute: number;
}

/** What a request is, for its tier. */
export type RateClass = "paid" | "free-model" | "decision" | "account";

export const anonymousTier: RateTier = { id: "ip", perMinute: 300 };
/** Whether a tier counts addresses, of which strangers have many, rather than keys, which callers make. */
export const countsAddresses = ({ id }: RateTier): boolean => id === "ip" || id === "mcp-ip";

const freeModelTier: RateTier = { id: "free-model", perMinute: 2400 };
const decisionTier: RateTier = { id: "decision", perMinute: 60 };

const planTiers: Record<PlanId, RateTier> = {
  free: { id: "paid-model", perMinute: 600 },
  payg: { id: "paid-model", perMinute: 600 },
  go: { id: "go", perMinute: 60 },
  pro: { id: "pro", perMinute: 1200 },
  pro_plus: { id: "power", perMinute: 1800 },
  max: { id: "power", perMinute: 1800 },
  enterprise: { id: "enterprise", perMinute: 2400 },
};

/** Tiers by plan and kind of request: the contract's table, with the operator's overrides of plans. */
export class RateTiers {
  private readonly plans: Record<PlanId, RateTier>;
  private readonly quotas: Partial<Record<PlanId, Quota>> = { go: starterWindow };

  constructor(
    overrides: Readonly<
      Record<string, { perMinute?: number | undefined; fiveHour?: number | undefined } | undefined>
    > = {},
  ) {
    this.plans = { ...planTiers };
    for (const plan of Object.keys(planTiers) as PlanId[]) {
      const { perMinute, fiveHour } = overrides[plan] ?? {};
      if (perMinute !== undefined) this.plans[plan] = { ...planTiers[plan], perMinute };
      if (fiveHour !== undefined) this.quotas[plan] = { ...starterWindow, requests: fiveHour };
    }
  }

  /** The tier that a key's request falls into; on enterprise it is the plan's for every model. */
  tierFor(plan: PlanId, rateClass: RateClass): RateTier {
    if (rateClass === "decision") return decisionTier;
    if (rateClass === "free-model" && plan !== "enterprise") return freeModelTier;
    return this.plans[plan];
  }

  /** The longer window that a key's request counts in beside its tier; undefined where there is none. */
  quotaFor(plan: PlanId, rateClass: RateClass): Quota | undefined {
    return rateClass === "paid" ? this.quotas[plan] : undefined;
  }
}
