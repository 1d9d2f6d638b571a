import { GatewayError } from "../../../platform/lib/errors.ts";
import type { CatalogModel } from "../../catalog/model.ts";
import type { CallOrigin, InferenceCall } from "../../inference-call.ts";
import type { SortKey } from "../../routing/provider-preferences.ts";
import type { Fields } from "../read-fields.ts";
import { routingOf, surfaceCall } from "../surface-call.ts";
import { embeddingTokens, type EmbeddingRequest } from "./embedding-request.ts";
import { interpretEmbeddings } from "./interpret-embeddings.ts";

/** A request for embeddings as its route has read it. */
export interface ReadEmbeddings {
  text: string;
  body: Fields;
  request: EmbeddingRequest;
  /** What `X-Routing-Strategy` asks for. */
  sort: SortKey | undefined;
}

/** The call of a request for embeddings. */
export function embeddingsCall(
  origin: CallOrigin,
  { text, body, request, sort }: ReadEmbeddings,
): InferenceCall {
  return surfaceCall(origin, {
    surface: "embeddings",
    text,
    routing: routingOf(body, request.model),
    sort,
    asks: {
      texts: request.inputs.length,
      parameters: request.dimensions === undefined ? [] : ["dimensions"],
      inputTokens: embeddingTokens(request.inputs),
    },
    interpret: (route) => interpretEmbeddings(request, route),
    assertServes: assertEmbeds,
  });
}

/** Throws `model_unavailable` for models that make no embeddings. */
export function assertEmbeds({ id, surface }: CatalogModel): void {
  if (surface === "embeddings") return;
  const message = `The model ${id} makes no embeddings; it serves ${surface}. GET /models?category=embedding lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}
