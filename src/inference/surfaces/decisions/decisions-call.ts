import { GatewayError } from "../../../platform/lib/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../inference-call.ts";
import { estimateInputTokens } from "../../input-estimate.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall } from "../surface-call.ts";
import type { DecisionRequest } from "./decision-request.ts";
import { interpretDecisions } from "./interpret-decisions.ts";

/** The call of a request for decisions, which costs nothing on any plan. */
export const decisionsCall = (
  origin: CallOrigin,
  { text, body, request }: { text: string; body: Fields; request: DecisionRequest },
): InferenceCall =>
  surfaceCall(origin, {
    surface: "decisions",
    text,
    routing: routingOf(body, request.model),
    asks: {
      texts: Object.keys(request.questions).length,
      inputTokens: estimateInputTokens(text, body),
    },
    unbilled: true,
    interpret: (route) => interpretDecisions(request, route),
    assertServes: assertDecides,
  });

function assertDecides({ id, surface }: CatalogModel): void {
  if (surface === "decisions") return;
  throw new GatewayError(
    "model_unavailable",
    `The model ${id} makes no decisions; it serves ${surface}.`,
    { param: "model" },
  );
}
