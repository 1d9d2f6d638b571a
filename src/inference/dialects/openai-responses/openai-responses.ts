import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { ResponsesStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError } from "./encode-error.ts";
import { encodeRequest } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { ResponsesStreamEncoder } from "./encode-stream.ts";
import { readError } from "./read-error.ts";

/** OpenAI's Responses (openai 7.55, 2026-11), and Open Responses (2026-07) where it asks for more. */
export const openaiResponses = {
  id: "openai-responses",
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new ResponsesStreamEncoder(context),
  createLossDetector,
  encodeError,
  encodeStreamError,
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new ResponsesStreamDecoder(context),
  readError,
} satisfies ClientDialect & UpstreamDialect;
