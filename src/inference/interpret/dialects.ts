import type { DialectId } from "../canonical/dialect-id.ts";
import type { ClientDialect, UpstreamDialect } from "../dialects/dialect.ts";
import { anthropicMessages } from "../dialects/anthropic-messages/anthropic-messages.ts";
import { googleGenerate } from "../dialects/google-generate/google-generate.ts";
import { openaiChat } from "../dialects/openai-chat/openai-chat.ts";
import { openaiResponses } from "../dialects/openai-responses/openai-responses.ts";

/** Dialects that clients speak. */
export const clientDialects: Partial<Record<DialectId, ClientDialect>> = {
  "openai-chat": openaiChat,
  "anthropic-messages": anthropicMessages,
  "openai-responses": openaiResponses,
};

/** Dialects that upstreams speak. */
export const upstreamDialects: Record<DialectId, UpstreamDialect> = {
  "openai-chat": openaiChat,
  "anthropic-messages": anthropicMessages,
  "openai-responses": openaiResponses,
  "google-generate": googleGenerate,
};
