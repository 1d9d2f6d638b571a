import type { DialectId } from "../canonical/dialect-id.ts";
import type { ClientDialect, UpstreamDialect } from "./dialect.ts";
import { amazonConverse } from "./amazon-converse/index.ts";
import { anthropicMessages } from "./anthropic-messages/index.ts";
import { googleGenerate } from "./google-generate/index.ts";
import { openaiChat } from "./openai-chat/index.ts";
import { openaiResponses } from "./openai-responses/index.ts";

/** Dialects that clients speak. */
export const clientDialects: Partial<Record<DialectId, ClientDialect>> = {
  "openai-chat": openaiChat,
  "anthropic-messages": anthropicMessages,
  "openai-responses": openaiResponses,
  "google-generate": googleGenerate,
};

/** Dialects that upstreams speak. */
export const upstreamDialects: Record<DialectId, UpstreamDialect> = {
  "openai-chat": openaiChat,
  "anthropic-messages": anthropicMessages,
  "openai-responses": openaiResponses,
  "google-generate": googleGenerate,
  "amazon-converse": amazonConverse,
};

/** Returns the field that caps the output of an answer, by the surface's name in records. */
export const capFieldOf = (recordedAs: string): ClientDialect["capField"] =>
  Object.values(clientDialects).find((dialect) => dialect.recordedAs === recordedAs)?.capField ??
  "max_tokens";
