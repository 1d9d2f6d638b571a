import type { Answer } from "../../http/request-context.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { type OcrPage, ocrCall, ocrTokens } from "../../inference/surfaces/ocr/ocr-call.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerCall } from "../inference/answer-call.ts";
import { callOrigin } from "../inference/read-call.ts";

/**
 * Has a file's pages read by the model that the operator names, charged as that model is priced.
 * Throws `GatewayError`.
 */
export async function readByModel(
  context: RequestContext,
  { model, pages }: { model: string; pages: readonly OcrPage[] },
  dependencies: Dependencies,
): Promise<Answer> {
  const { counters } = dependencies;
  const origin = await callOrigin(context, {
    idPrefix: "ocr-",
    body: {},
    counters,
    estimateTokens: () => ocrTokens(pages),
  });
  // The request is counted by its settlement, as inference is.
  context.settled = true;
  try {
    return await answerCall(context, ocrCall(origin, { model, pages }), dependencies);
  } catch (error) {
    throw error instanceof GatewayError
      ? inWordsOfOcr(error, origin.forcedProviders !== undefined)
      : error;
  }
}

/** Error codes of a model without a provider, where the caller did not choose the model. */
const unconfigured: ReadonlySet<string> = new Set(["model_unavailable", "no_upstream"]);

/**
 * What a provider did has one name on this route (contract: `POST /ocr/extract`); what is the
 * caller's keeps its own.
 */
function inWordsOfOcr(error: GatewayError, choosesProvider: boolean): GatewayError {
  const { message, metadata, headers, retry, retryAfterSeconds, fault, code } = error;
  if (fault === "upstream") {
    return new GatewayError("ocr_upstream_failed", `The file could not be read. ${message}`, {
      fault,
      retry,
      metadata,
      headers,
      cause: error,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
  }
  if (choosesProvider || !unconfigured.has(code)) return error;
  return new GatewayError(
    "missing_workers_ai_binding",
    "This server is not set up to read such files. Tell its operator.",
    {
      detail: message,
      cause: error,
    },
  );
}
