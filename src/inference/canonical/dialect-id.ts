import type { JsonObject } from "./json.ts";

/** The chat-like wire formats, between which the canonical form translates. */
export const dialectIds = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
  "amazon-converse",
] as const;

/** A chat-like wire format. */
export type DialectId = (typeof dialectIds)[number];

/**
 * Fields that the canonical form has no name for, as JSON of one dialect. They are written back
 * into the same dialect unchanged, and are a declared loss in every other.
 */
export interface Extensions {
  dialect: DialectId;
  fields: JsonObject;
}
