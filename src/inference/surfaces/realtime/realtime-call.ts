import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../pipeline/inference-call.ts";
import { surfaceCall } from "../surface-call.ts";

/** The most output tokens of one response of a model that names no maximum (gpt-realtime). */
const responseTokensMax = 4_096;

/** What one response of a session may use at most. */
export interface ResponseBound {
  inputTokens: number;
  /** The cap of the session or of the response; undefined where it is the model's. */
  maxOutputTokens: number | undefined;
}

/** Returns the output tokens that a response under a cap is held for. */
export const mostTokensOf = (cap: number | undefined): number => cap ?? responseTokensMax;

/**
 * Builds the call of the next response of a session, for its plan, its hold and its record. The
 * events themselves are relayed and never adapted.
 */
export function realtimeCall(
  origin: CallOrigin,
  { model, bound }: { model: string; bound: ResponseBound },
): InferenceCall {
  const call = surfaceCall(origin, {
    surface: "realtime",
    text: "",
    routing: { model },
    requirements: { texts: 1, inputTokens: bound.inputTokens },
    adapt: () => {
      throw new GatewayError("bad_request", "Events of a session are sent as they are.");
    },
    assertServes: assertSpeaks,
  });
  return {
    ...call,
    requirements: {
      ...call.requirements,
      maxOutputTokens: mostTokensOf(bound.maxOutputTokens),
      mayUse: () => true,
    },
  };
}

/** Throws `model_unavailable` for models without realtime sessions. */
function assertSpeaks({ id, surface }: CatalogModel): void {
  if (surface === "realtime") return;
  const message = `The model ${id} has no realtime sessions; it serves ${surface}. GET /models lists surfaces.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}
