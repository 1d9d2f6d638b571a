import type { ImportPlan } from "./import-plan.ts";
import type { SourceNode } from "./source-node.ts";

/** A value that a provider with a cloud account reads from one variable, for all of its models. */
interface CloudVariable {
  vendor: string;
  /** The variable that the gateway reads. */
  variable: string;
  /** The reference by which the file has the value, in the configuration's form; undefined for a value. */
  reference: string | undefined;
}

/**
 * Takes a value that a provider reads from a variable. A value in the file goes to switchyard.env;
 * a second one that differs is left out.
 */
export function takeCloudVariable(
  plan: ImportPlan,
  node: SourceNode | undefined,
  { vendor, variable, reference }: CloudVariable,
): void {
  const written = node?.text();
  if (node === undefined || written === undefined) return;
  const other = reference?.slice(2, -1);
  if (other === variable) return;
  const first = plan.variables.get(variable);
  if (other === undefined && first !== undefined && first !== written) {
    node.report("left_out", `${variable} holds for all of ${vendor}, and an earlier entry sets it`);
    return;
  }
  if (other === undefined) plan.secret(variable, written);
  node.report(
    "changed",
    `is read from ${variable}${other === undefined ? "" : `: give it what ${other} has`}`,
  );
}
