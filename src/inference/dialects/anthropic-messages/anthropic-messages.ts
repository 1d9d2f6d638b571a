import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError } from "./encode-error.ts";
import { encodeRequest } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";
import { pingFrame } from "./frame.ts";
import { readError } from "./read-error.ts";

/** The version that every Messages server knows; that of 2026-10-21 refuses what only its own clients leave out. */
export const versionDefault = "2023-06-01";

/** Anthropic's Messages, in the versions of 2023-06-01 and 2026-10-21 (@anthropic-ai/sdk 1.11, 2026-11). */
export const anthropicMessages = {
  id: "anthropic-messages",
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new MessagesStreamEncoder(context),
  createLossDetector,
  pingFrame,
  encodeError,
  encodeStreamError,
  requestHeaders: { "anthropic-version": versionDefault },
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new MessagesStreamDecoder(context),
  readError,
} satisfies ClientDialect & UpstreamDialect;
