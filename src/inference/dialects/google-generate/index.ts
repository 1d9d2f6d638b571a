import type { DecodeContext, UpstreamDialect } from "../dialect.ts";
import { decodeResponse, eventsOfWhole, usageOfFailure, wholeOfEvents } from "./decode-response.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { readError } from "./errors.ts";

/**
 * Google's generateContent, as the Gemini API and Vertex AI speak it (@google/genai 3.1, 2026-11).
 */
export const googleGenerate = {
  id: "google-generate",
  signsCalls: true,
  statusInBody: true,
  thinkingBudget: true,
  encodeRequest,
  decodeResponse,
  usageOfFailure,
  createStreamDecoder: (context?: DecodeContext) => new GenerateStreamDecoder(context),
  eventsOfWhole,
  wholeOfEvents,
  readError,
} satisfies UpstreamDialect;
