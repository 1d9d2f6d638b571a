import { encodeContractError, type ErrorEncoder } from "../../http/error-envelope.ts";
import type { ErrorCode } from "../../platform/kernel/errors.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** An error under another name; everything else about it stays. */
const renamed = (
  error: GatewayError,
  code: ErrorCode,
  metadata: Readonly<Record<string, unknown>> = {},
): GatewayError =>
  new GatewayError(code, error.message, {
    fault: error.fault,
    retry: error.retry,
    metadata: { ...error.metadata, ...metadata },
    ...(error.param !== undefined && { param: error.param }),
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
  });

/** How errors of a surface are called where the contract has names of its own for them there. */
export interface SurfaceErrorNames {
  names: Partial<Record<ErrorCode, ErrorCode>>;
  /** `metadata.type` of these codes. */
  types?: Partial<Record<ErrorCode, string>>;
}

/** The contract's envelope with the names of one surface. */
export const surfaceErrors =
  ({ names, types = {} }: SurfaceErrorNames): ErrorEncoder =>
  (error, context) => {
    const code = names[error.code] ?? error.code;
    const type = types[code];
    const same = code === error.code && type === undefined;
    return encodeContractError(
      same ? error : renamed(error, code, type === undefined ? {} : { type }),
      context,
    );
  };

/**
 * The same for Cohere's clients, which read a message beside the envelope. Source:
 * https://docs.cohere.com/reference/errors
 */
export function cohereErrors(names: SurfaceErrorNames): ErrorEncoder {
  const encode = surfaceErrors(names);
  return (error, context) => ({ ...encode(error, context), message: error.message });
}

/**
 * Providers that cannot be reached or whose answer is cut: other surfaces than chat know one name
 * for both.
 */
export const unreachable = {
  bad_gateway: "upstream_error",
  empty_stream: "upstream_error",
} as const;
