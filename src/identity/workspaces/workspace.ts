/** The owner of keys, balances and records; nothing is ever shared between two of them. */
export interface Workspace {
  /** `ws_` id. */
  id: string;
  name: string;
  plan: PlanId;
  createdAtMs: number;
  /**
   * Whose personal workspace it is; absent for those of organisations, and for the first one until
   * it is claimed.
   */
  ownerUserId?: string;
  /** The organisation that it belongs to, where it does. */
  organizationId?: string;
  /** Its owner is shut out, or it was closed: none of its credentials is let in. */
  blocked?: true;
}

/** Plans a workspace can be on, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;

/** The id of a workspace's tariff, such as `pro`. */
export type PlanId = (typeof planIds)[number];

/** Whether a text names a plan of the contract. */
export const isPlanId = (value: string): value is PlanId =>
  (planIds as readonly string[]).includes(value);
