import type { DecodeContext, UpstreamDialect } from "../dialect.ts";
import { decodeResponse, usageOfFailure } from "./decode-response.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { readError } from "./read-error.ts";

/** Google's generateContent, as the Gemini API and Vertex AI speak it (@google/genai 3.1, 2026-11). */
export const googleGenerate = {
  id: "google-generate",
  encodeRequest,
  decodeResponse,
  usageOfFailure,
  createStreamDecoder: (context?: DecodeContext) => new GenerateStreamDecoder(context),
  readError,
} satisfies UpstreamDialect;
