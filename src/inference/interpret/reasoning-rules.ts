import type { DialectId } from "../canonical/dialect-id.ts";
import type { ReasoningRequest } from "../canonical/reasoning.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { Loss } from "../canonical/loss.ts";
import type { ReasoningLevels, UpstreamRoute } from "../catalog/model.ts";
import { clampEffort } from "./clamp-effort.ts";

/**
 * What one attempt asks of the model's thinking (contract, reasoning rules 1 to 4): thinking that a
 * Messages client turned on is effort `high` for an upstream of another dialect, and its budget is not
 * carried over; every effort is clamped against what the model declares. Undefined asks nothing.
 */
export function reasoningFor(
  { dialect, reasoning }: Pick<CanonicalRequest, "dialect" | "reasoning">,
  { upstream, declared }: { upstream: DialectId; declared: ReasoningLevels | undefined },
): ReasoningRequest | undefined {
  if (reasoning === undefined) return undefined;
  const asked =
    dialect === "anthropic-messages" && upstream !== dialect ? flatReasoning(reasoning) : reasoning;
  if (asked.effort === undefined) return asked;
  const effort = clampEffort(asked.effort, declared);
  if (effort === asked.effort) return asked;
  const { effort: _, ...rest } = asked;
  return effort === undefined ? rest : { ...rest, effort };
}

/** Rule 2. Adaptive thinking names no effort, so that the model keeps its own. */
function flatReasoning({ budgetTokens, ...reasoning }: ReasoningRequest): ReasoningRequest {
  if (reasoning.enabled === false) return { ...reasoning, effort: "none" };
  if (reasoning.effort !== undefined) return reasoning;
  return budgetTokens === undefined ? reasoning : { ...reasoning, effort: "high" };
}

/**
 * Whether a route is told the format of the answer (rule 6): one whose list of parameters lacks it is asked last, and without it. A
 * route without a list of its own is permissive.
 */
export function takesFormat({ supportedParameters: declared = [] }: UpstreamRoute): boolean {
  return (
    declared.length === 0 ||
    declared.includes("response_format") ||
    declared.includes("structured_outputs")
  );
}

/** The loss of a format that a route does not take. */
export const undeclaredFormat = (field: string): Loss => ({
  field,
  reason: "the provider does not declare response_format for this model",
});
