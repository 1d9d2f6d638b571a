import type { PlanId } from "../identity/workspaces/workspace-store.ts";
import { starterWindow, type Quota } from "../platform/rate-windows/quota-counter.ts";

/** A cap on requests in a sliding window of 60 seconds. */
export interface RateTier {
  /** The name that callers read in `X-RateLimit-Tier`. */
  id: string;
  perMinute: number;
}

/** The class of a request, which selects its tier. */
export type RateClass = "paid" | "free-model" | "decision" | "account";

/** The cap on requests without a credential, for each address and minute. */
export const anonymousTier: RateTier = { id: "ip", perMinute: 300 };

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

/**
 * The tiers by plan and class of request: the contract's table, with the operator's overrides of
 * plans.
 */
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

  /** Returns the tier of a key's request. On enterprise, the plan's tier covers every model. */
  tierFor(plan: PlanId, rateClass: RateClass): RateTier {
    if (rateClass === "decision") return decisionTier;
    if (rateClass === "free-model" && plan !== "enterprise") return freeModelTier;
    return this.plans[plan];
  }

  /**
   * Returns the longer window that a key's request counts in beside its tier; undefined where there
   * is none.
   */
  quotaFor(plan: PlanId, rateClass: RateClass): Quota | undefined {
    return rateClass === "paid" ? this.quotas[plan] : undefined;
  }
}
