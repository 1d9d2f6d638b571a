/** Plans a workspace can be on, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;

export type PlanId = (typeof planIds)[number];

export const isPlanId = (value: string): value is PlanId =>
  (planIds as readonly string[]).includes(value);
