import type { JsonObject } from "./json.ts";

/** Chat-shaped wire formats that the canonical form stands between. */
export const dialectIds = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
  "amazon-converse",
] as const;

/** One of the chat-shaped wire formats. */
export type DialectId = (typeof dialectIds)[number];

/**
 * Fields that the canonical form has no name for, as they stood in one dialect's JSON. They go back
 * into the same dialect unchanged and are a declared loss in every other.
 */
export interface Extensions {
  dialect: DialectId;
  fields: JsonObject;
}
