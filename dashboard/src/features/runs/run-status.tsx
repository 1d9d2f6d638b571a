import { Status } from "../../ui/values.tsx";
import type { Run } from "./api.ts";

const kinds = {
  active: "good",
  paused: "warning",
  exhausted: "bad",
  expired: undefined,
  ended: undefined,
} as const;

/** Whether a run serves requests, and if not, why. */
export function RunStatus({ status }: Pick<Run, "status">) {
  const kind = kinds[status];
  return kind === undefined ? <Status>{status}</Status> : <Status kind={kind}>{status}</Status>;
}
