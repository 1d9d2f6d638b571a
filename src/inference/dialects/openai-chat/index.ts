import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse } from "./decode-response.ts";
import { ChatStreamDecoder } from "./decode-stream.ts";
import { encodeError, encodeStreamError, readError } from "./errors.ts";
import { encodeRequest } from "./encode-request.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { ChatStreamEncoder, eventsOfWhole } from "./encode-stream.ts";
import { passThrough } from "./passthrough/passthrough.ts";
import { presetFields } from "./preset-fields.ts";
import { requirements } from "./requirements.ts";

/** OpenAI's chat completions, and the variants of compatible servers (openai 7.55, 2026-11). */
export const openaiChat = {
  id: "openai-chat",
  recordedAs: "chat",
  capField: "max_tokens",
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new ChatStreamEncoder(context),
  createLossDetector,
  encodeError,
  encodeStreamError,
  passThrough,
  presetFields,
  requirements,
  showsOpenThoughts: true,
  eventsOfWhole,
  encodeRequest,
  decodeResponse,
  createStreamDecoder: (context?: DecodeContext) => new ChatStreamDecoder(context),
  readError,
} satisfies ClientDialect & UpstreamDialect;
