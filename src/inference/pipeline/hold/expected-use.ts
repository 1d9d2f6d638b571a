import type { Execution } from "../execution.ts";
import type { ExpectedUse } from "./hold-ceiling.ts";

/**
 * Returns what a request may use of its candidates. A caller who requires all parameters is not
 * given a shorter answer than requested.
 */
export function expectedUse({
  call: { requirements },
  inputTokens,
  losesNothing,
}: Pick<Execution, "call" | "inputTokens" | "losesNothing">): ExpectedUse {
  const { maxOutputTokens, thoughtTokens, thoughtBudget, choices } = requirements;
  return {
    inputTokens,
    maxOutputTokens,
    thoughtTokens,
    thoughtBudget,
    choices,
    isUncut: requirements.isUncut === true || (losesNothing && maxOutputTokens !== undefined),
    mayUse: requirements.mayUse && ((part) => requirements.mayUse?.(part) === true),
    extrasAt: requirements.extrasAt && ((route) => requirements.extrasAt?.(route)),
    mediaAt: requirements.mediaAt,
  };
}
