import type { SandboxDialect, Refusal } from "../dialect.ts";

/** A request of a surface without conversation: the text in it, and its answer. */
interface PlainRequest {
  /** Text that is searched for directives. */
  text: string;
  /** Body of the answer; `seed` is derived from the bytes of the request. */
  answer(seed: string): unknown;
}

/** A surface that answers one body with one body. */
export interface PlainSurface extends Pick<SandboxDialect, "refusal"> {
  /** Understands the parsed JSON of a request; throws a ZodError. */
  read(body: unknown): PlainRequest;
}

/** A plain surface that refuses as OpenAI does. */
export const openaiSurface = (read: PlainSurface["read"]): PlainSurface => ({
  read,
  refusal: openaiError,
});

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** OpenAI's error body, of all its surfaces. */
export const openaiError = ({ status, message }: Refusal): { error: Record<string, unknown> } => ({
  error: {
    message,
    type: typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "server_error"),
    param: null,
    code: status === 429 ? "rate_limit_exceeded" : null,
  },
});
