import { Status } from "../../ui/values.tsx";
import type { Customer } from "./api.ts";

const kinds = { active: "good", exhausted: "bad", suspended: "warning" } as const;

/** The plan of a customer in words. */
export const planText = ({ plan, has_own_plan: own }: Customer): string =>
  plan === null ? "no plan" : own ? plan.type : `${plan.type}, by the configuration`;

/** Whether requests of a customer are served, and if not, why. */
export function CustomerStatus({ status }: Pick<Customer, "status">) {
  return <Status kind={kinds[status]}>{status}</Status>;
}
