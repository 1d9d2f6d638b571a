import { chatSpelling } from "./chat-spelling.ts";
import { messagesSpelling } from "./messages-spelling.ts";
import type { PresetSpelling } from "./preset-spelling.ts";
import { responsesSpelling } from "./responses-spelling.ts";

/** Client dialects in which a request may name a preset. */
export type PresetDialect = "openai-chat" | "anthropic-messages" | "openai-responses";

/** The spelling of each dialect. */
export const presetSpellings: Readonly<Record<PresetDialect, PresetSpelling>> = {
  "openai-chat": chatSpelling,
  "anthropic-messages": messagesSpelling,
  "openai-responses": responsesSpelling,
};
