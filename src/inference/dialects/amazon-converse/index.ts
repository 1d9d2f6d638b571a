import type { DecodeContext, UpstreamDialect } from "../dialect.ts";
import { decodeResponse, usageOfFailure } from "./decode-response.ts";
import { ConverseStreamDecoder } from "./decode-stream.ts";
import { encodeRequest } from "./encode-request.ts";
import { readError } from "./errors.ts";
import { withoutSeals } from "./refused-seals.ts";

/**
 * Amazon's Converse API, as Bedrock Runtime speaks it (@aws-sdk/client-bedrock-runtime 3.1164,
 * 2026-11).
 */
export const amazonConverse = {
  id: "amazon-converse",
  binaryStreams: true,
  exceptionForm: "named",
  statusInBody: true,
  thinkingBudget: true,
  encodeRequest,
  decodeResponse,
  usageOfFailure,
  createStreamDecoder: (context?: DecodeContext) => new ConverseStreamDecoder(context),
  withoutSeals,
  readError,
} satisfies UpstreamDialect;
