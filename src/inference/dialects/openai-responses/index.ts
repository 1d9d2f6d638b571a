import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { ResponsesStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError, readError } from "./errors.ts";
import { encodeRequest, maxOutputTokensMin } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { ResponsesStreamEncoder } from "./encode-stream.ts";
import { passThrough } from "./passthrough/passthrough.ts";
import { withoutSeals } from "./passthrough/refused-seals.ts";
import { presetFields } from "./preset-fields.ts";
import { requirements } from "./requirements.ts";
import { socketMode } from "./socket-mode.ts";

/**
 * OpenAI's Responses (openai 7.55, 2026-11), and Open Responses (2026-07) where it requires more.
 */
export const openaiResponses = {
  id: "openai-responses",
  recordedAs: "responses",
  capField: "max_output_tokens",
  metadataInAnswer: true,
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new ResponsesStreamEncoder(context),
  createLossDetector,
  encodeError,
  encodeStreamError,
  passThrough,
  presetFields,
  requirements,
  capRule: { leastTokens: maxOutputTokensMin },
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new ResponsesStreamDecoder(context),
  withoutSeals,
  readError,
  socketMode,
} satisfies ClientDialect & UpstreamDialect;
