import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import type { ClientDialect, DecodeContext, ResponseContext, UpstreamDialect } from "../dialect.ts";
import { estimateInputTokens } from "../shared/requirements.ts";
import { withoutSeals } from "./contents/refused-seals.ts";
import { decodeRequest } from "./decode-request.ts";
import { decodeResponse, eventsOfWhole, usageOfFailure, wholeOfEvents } from "./decode-response.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { searchesBesideFunctions } from "./encode-state.ts";
import { createLossDetector, encodeResponse } from "./encode-response.ts";
import { GenerateStreamEncoder } from "./encode-stream.ts";
import { encodeError, encodeStreamError, pingFrame, readError } from "./errors.ts";
import { passThrough } from "./passthrough/passthrough.ts";
import { presetFields } from "./preset-fields.ts";
import { requirements } from "./requirements.ts";

/**
 * Google's generateContent, as the Gemini API and Vertex AI speak it (@google/genai 3.3, 2026-11).
 */
export const googleGenerate = {
  id: "google-generate",
  recordedAs: "generate",
  capField: "maxOutputTokens",
  refusesBrokenAnswers: true,
  decodeRequest,
  encodeResponse,
  createStreamEncoder: (context?: ResponseContext) => new GenerateStreamEncoder(context),
  createLossDetector,
  pingFrame,
  encodeError,
  encodeStreamError,
  passThrough,
  presetFields,
  requirements,
  signsCalls: true,
  statusInBody: true,
  thinkingBudget: true,
  searchesBesideFunctions,
  inputCount: {
    estimate: (body) => estimateInputTokens(JSON.stringify(body), body),
    read: (text) => {
      const count = /"totalTokens"\s*:\s*(\d{1,12})/.exec(text)?.[1];
      return count === undefined ? undefined : Number(count);
    },
    wrap: (text, upstreamModel) => {
      const model = /^(?:models|tunedModels)\//.test(upstreamModel)
        ? upstreamModel
        : `models/${upstreamModel}`;
      return `{"generateContentRequest":${editMembers(text, new Map([["model", JSON.stringify(model)]]))}}`;
    },
  },
  encodeRequest,
  decodeResponse,
  usageOfFailure,
  createStreamDecoder: (context?: DecodeContext) => new GenerateStreamDecoder(context),
  eventsOfWhole,
  wholeOfEvents,
  withoutSeals,
  readError,
} satisfies ClientDialect & UpstreamDialect;
