import type { ReportedError } from "../../canonical/response.ts";
import { readErrorBody } from "../errors.ts";
import { asObject, asString } from "../shared/wire-fields.ts";

/** HTTP statuses of Bedrock Runtime's exceptions, which streams report without one. */
const statusByException: Readonly<Record<string, number>> = {
  AccessDeniedException: 403,
  ConflictException: 400,
  InternalServerException: 500,
  ModelErrorException: 502,
  ModelNotReadyException: 503,
  ModelStreamErrorException: 502,
  ModelTimeoutException: 504,
  ResourceNotFoundException: 404,
  ServiceQuotaExceededException: 429,
  ServiceUnavailableException: 503,
  ThrottlingException: 429,
  ValidationException: 400,
};

/**
 * Reads an error answer: `{"message"}`, with the exception's name in `__type` where there is one. A
 * model that failed to answer is reported as 424, which is a 502 elsewhere. Source:
 * docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html (2026-11).
 */
export function readError(status: number, body: unknown): ReportedError {
  const fields = asObject(body);
  const reported = readErrorBody(status, body);
  // `com.amazon.coral.service#ThrottlingException` names the package too.
  const name = asString(fields?.__type)?.replace(/^.*#/, "");
  const message = asString(fields?.Message);
  return {
    ...reported,
    ...(message !== undefined && fields?.message === undefined && { message }),
    ...(name !== undefined && { code: name }),
    status: (name === undefined ? undefined : statusOf(name)) ?? meantStatus(status),
  };
}

/** Reads an exception that came as an event of a stream. */
export function readException(name: string, body: unknown): ReportedError {
  const code = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const fields = asObject(body);
  const message =
    asString(fields?.message) || asString(fields?.Message) || asString(fields?.originalMessage);
  return {
    message: message ?? `The provider broke off with ${code}.`,
    code,
    status: statusOf(code) ?? 502,
  };
}

const statusOf = (name: string): number | undefined =>
  Object.hasOwn(statusByException, name) ? statusByException[name] : undefined;

/**
 * Returns the status that is meant: 424 says that the model failed, and 408 that it took too long.
 */
const meantStatus = (status: number): number => (status === 424 ? 502 : status);
