import { GatewayError } from "../../../platform/lib/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../inference-call.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall } from "../surface-call.ts";
import { billedTokens, interpretRerank } from "./interpret-rerank.ts";
import type { RerankRequest } from "./rerank-request.ts";

/** Documents that the vendors' search unit has, for what a request is held for. */
const documentsPerSearchUnit = 100;

/** Tokens that a request may be billed for, as far as is known before it is answered. */
export const expectedTokens = (request: RerankRequest): number =>
  billedTokens(request, Math.ceil(request.documents.length / documentsPerSearchUnit));

/** The call of a request to rank documents. */
export const rerankCall = (
  origin: CallOrigin,
  { text, body, request }: { text: string; body: Fields; request: RerankRequest },
): InferenceCall =>
  surfaceCall(origin, {
    surface: "rerank",
    text,
    routing: routingOf(body, request.model),
    asks: {
      texts: request.documents.length,
      parameters: [
        ...(request.topN === undefined ? [] : ["top_n"]),
        ...(request.maxTokensPerDocument === undefined ? [] : ["max_tokens_per_doc"]),
      ],
      inputTokens: expectedTokens(request),
    },
    interpret: (route) => interpretRerank(request, route),
    assertServes: assertReranks,
  });

function assertReranks({ id, surface }: CatalogModel): void {
  if (surface === "rerank") return;
  throw new GatewayError(
    "model_not_rerank_compatible",
    `The model ${id} does not rank documents; it serves ${surface}.`,
    {
      param: "model",
    },
  );
}
