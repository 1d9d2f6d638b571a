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
    ...(requirements.mayUse !== undefined && {
      mayUse: (part) => requirements.mayUse?.(part) === true,
    }),
    ...(requirements.extrasAt !== undefined && {
      extrasAt: (route) => requirements.extrasAt?.(route),
    }),
    ...(requirements.mediaAt !== undefined && { mediaAt: requirements.mediaAt }),
  };
}
