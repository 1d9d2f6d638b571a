import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { maxTokensDefault } from "../reasoning-rules.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError, readError } from "./errors.ts";
import { encodeRequest } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";
import { estimateMessagesInput, readCountedInput } from "./estimate-input.ts";
import { pingFrame } from "./frame.ts";
import { passThrough, versionDefault } from "./passthrough/passthrough.ts";
import { presetFields } from "./preset-fields.ts";
import { requirements } from "./requirements.ts";

/**
 * Anthropic's Messages, in the versions of 2023-06-01 and 2026-10-21 (@anthropic-ai/sdk 1.11,
 * 2026-11).
 */
export const anthropicMessages = {
  id: "anthropic-messages",
  recordedAs: "messages",
  capField: "max_tokens",
  refusesBrokenAnswers: true,
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new MessagesStreamEncoder(context),
  createLossDetector,
  pingFrame,
  encodeError,
  encodeStreamError,
  passThrough,
  presetFields,
  requirements,
  exceptionForm: "messages-error",
  thinkingBudget: true,
  thinksWhenAsked: true,
  capRule: { statedTokens: maxTokensDefault },
  inputCount: { estimate: estimateMessagesInput, read: readCountedInput },
  requestHeaders: { "anthropic-version": versionDefault },
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new MessagesStreamDecoder(context),
  readError,
} satisfies ClientDialect & UpstreamDialect;
