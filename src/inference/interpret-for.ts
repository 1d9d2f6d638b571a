import { GatewayError } from "../platform/lib/errors.ts";
import type { Loss } from "./canonical/loss.ts";
import type { Execution } from "./execution.ts";
import type { Interpretation } from "./interpret/interpretation.ts";
import type { Candidate } from "./routing/candidate.ts";

/** The request as this candidate can be told it; undefined where it cannot, which is noted. */
export function interpretFor({ call, losesNothing, unsayable }: Execution, candidate: Candidate): Interpretation | undefined {
  try {
    const interpretation = call.interpret(candidate);
    if (!losesNothing || interpretation.losses.length === 0) return interpretation;
    unsayable.push(wouldLose(candidate, interpretation.losses));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    unsayable.push(error);
  }
  return undefined;
}

function wouldLose({ route }: Candidate, losses: readonly Loss[]): GatewayError {
  const fields = [...new Set(losses.map(({ field }) => field))];
  const message = "No provider takes every parameter of this request, as provider.require_parameters asks; "
    + `${route.provider.name} would not hear: ${fields.slice(0, 10).join(", ")}.`;
  return new GatewayError("no_upstream", message, {
    param: fields[0] ?? "model",
    metadata: { translation_loss: losses.slice(0, 20).map(({ field, reason }) => ({ field, reason })) },
  });
}
