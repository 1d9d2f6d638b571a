import type { RequestContext } from "../../access/define-endpoint.ts";
import type { ErrorEncoder } from "../../http/error-envelope.ts";

/** The declarations that Ollama's endpoints share. */
export const ollamaDoor = {
  base: "root",
  access: { llmKey: true, door: "ollama" },
  anyOrigin: false,
  tag: "Inference",
} as const;

/** Returns the answer by which Ollama's clients know its server. */
export const runningResponse = ({ headers }: Pick<RequestContext, "headers">): Response =>
  new Response("Ollama is running", {
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
  });

/** Encodes an error as Ollama's clients read it, with the gateway's code and metadata. */
export const encodeOllamaError: ErrorEncoder = (error, { traceId }) => ({
  error: error.message,
  code: error.code,
  metadata: { type: error.facts.type, fault: error.fault, trace_id: traceId, ...error.metadata },
});
