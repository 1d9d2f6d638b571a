import type { PlanId } from "./plan.ts";

/** The owner of keys, balances and records; nothing is ever shared between two of them. */
export interface Workspace {
  /** `ws_` id. */
  id: string;
  name: string;
  plan: PlanId;
  createdAtMs: number;
}
