import type { ImportPlan } from "./import-plan.ts";
import type { SourceNode } from "./source-node.ts";

/** Names of headers whose values are secrets. */
const secretName = /auth|key|token|secret|cookie|password/i;

/**
 * Returns headers as the configuration writes them. The value of one whose name is that of a secret
 * goes to a variable, and is not printed. `referenceOf` converts a reference to a variable.
 */
export function headersOf(
  written: readonly (readonly [name: string, part: SourceNode | undefined])[],
  { plan, referenceOf }: { plan: ImportPlan; referenceOf(text: string): string | undefined },
): Readonly<Record<string, string>> | undefined {
  const headers = written.flatMap(([name, part]): [string, string][] => {
    const value = part?.text() ?? part?.number()?.toString();
    if (part === undefined || value === undefined) {
      part?.report("left_out", "is no text");
      return [];
    }
    const reference = referenceOf(value);
    if (reference !== undefined) return [[name, `${reference.slice(0, -1)}:-}`]];
    if (!secretName.test(name)) return [[name, value]];
    part.report("changed", "the value goes to switchyard.env, not to the configuration");
    return [[name, plan.secret(`header ${name}`, value)]];
  });
  return headers.length === 0 ? undefined : Object.fromEntries(headers);
}
