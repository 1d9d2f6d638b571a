import { Status } from "../../ui/parts.tsx";
import type { Customer } from "./api.ts";

const kinds = { active: "good", exhausted: "bad", suspended: "warning" } as const;

/** Whether requests of a customer are served, and if not, why. */
export function CustomerStatus({ status }: Pick<Customer, "status">) {
  return <Status kind={kinds[status]}>{status}</Status>;
}
