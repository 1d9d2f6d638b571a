import { GatewayError } from "../platform/lib/errors.ts";
import type { Loss } from "./canonical/loss.ts";
import type { Execution } from "./execution.ts";
import type { Interpretation } from "./interpret/interpretation.ts";
import type { Candidate } from "./routing/candidate.ts";
import { outputCapFor } from "./take-hold.ts";

/** A request as a candidate is told it. */
export interface Told {
  interpretation: Interpretation;
  /** The cap that stands in it in place of a larger one; undefined where it was not lowered. */
  outputCap: number | undefined;
}

/** The request as this candidate can be told it; undefined where it cannot or is too dear, which is noted. */
export function interpretFor(execution: Execution, candidate: Candidate): Told | undefined {
  const { call, losesNothing, unsayable } = execution;
  try {
    const outputCap = outputCapFor(execution, candidate);
    const { model, route } = candidate;
    const interpretation = call.interpret(
      outputCap === undefined ? candidate : { model, route, outputCap },
    );
    if (!losesNothing || interpretation.losses.length === 0) return { interpretation, outputCap };
    unsayable.push(wouldLose(candidate, interpretation.losses));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    unsayable.push(error);
  }
  return undefined;
}

function wouldLose({ route }: Candidate, losses: readonly Loss[]): GatewayError {
  const fields = [...new Set(losses.map(({ field }) => field))];
  const message =
    "No provider takes every parameter of this request, as provider.require_parameters asks; " +
    `${route.provider.name} would not hear: ${fields.slice(0, 10).join(", ")}.`;
  return new GatewayError("no_upstream", message, {
    param: fields[0] ?? "model",
    metadata: {
      translation_loss: losses.slice(0, 20).map(({ field, reason }) => ({ field, reason })),
    },
  });
}
