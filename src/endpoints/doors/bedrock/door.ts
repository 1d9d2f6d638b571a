import type { RequestContext } from "../../../access/define-endpoint.ts";
import type { ErrorEncoder } from "../../../http/error-envelope.ts";
import { outputCapHeader } from "../../inference/answer-call.ts";
import { inferenceBodyBytesMax } from "../../inference/read-call.ts";

/** Names of Bedrock Runtime's exceptions by status, which its clients act on. */
const exceptionByStatus: Readonly<Record<number, string>> = {
  400: "ValidationException",
  401: "UnrecognizedClientException",
  402: "ServiceQuotaExceededException",
  403: "AccessDeniedException",
  404: "ResourceNotFoundException",
  408: "ModelTimeoutException",
  429: "ThrottlingException",
  503: "ServiceUnavailableException",
};

/**
 * Encodes an error as Bedrock's clients read it: botocore takes the exception's name from `code`,
 * others from `__type`. The gateway's own code is in `metadata`.
 */
const encodeBedrockError: ErrorEncoder = (error, { traceId }) => {
  const name = exceptionByStatus[error.status] ?? "InternalServerException";
  return {
    __type: name,
    code: name,
    message: error.message,
    metadata: {
      code: error.code,
      type: error.facts.type,
      fault: error.fault,
      trace_id: traceId,
      ...error.metadata,
    },
  };
};

/** The declarations that Bedrock's endpoints share. */
export const bedrockDoor = {
  method: "POST",
  base: "root",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  tag: "Inference",
  answerHeaders: outputCapHeader,
  encodeError: encodeBedrockError,
} as const;

/** Returns the paths of an operation on a model, whose slash clients encode or not. */
export const bedrockPath = <Verb extends string>(verb: Verb) => ({
  path: `/model/:id/${verb}` as const,
  alsoAt: [`/model/:id/:slug/${verb}`],
});

/** Returns the model of such a path. */
export function modelOf({ request }: Pick<RequestContext, "request">): string {
  const { id = "", slug } = request.params;
  return slug === undefined ? id : `${id}/${slug}`;
}
