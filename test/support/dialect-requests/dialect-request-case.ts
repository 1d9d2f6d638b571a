import type { DialectId } from "../../../src/inference/canonical/dialect-id.ts";
import type { JsonObject } from "../../../src/inference/canonical/json.ts";
import type { Message } from "../../../src/inference/canonical/message.ts";
import type { CanonicalRequest } from "../../../src/inference/canonical/request.ts";

/** A canonical request without the fields that every request has. */
type RequestMeaning = Omit<CanonicalRequest, "dialect" | "model" | "stream">;

/**
 * The form of one canonical request in each dialect, and its meaning when it is parsed back. Every
 * tested dialect has to appear in `wire` or in `refuses`, so that none is forgotten.
 */
export interface DialectRequestCase {
  what: string;
  canonical: RequestMeaning;
  /**
   * The body without the fields that every request of the dialect has; the table test adds those.
   */
  wire: Partial<Record<DialectId, JsonObject>>;
  /** Members that parse back differently, for a dialect that cannot express everything. */
  reads?: Partial<
    Record<DialectId, { [Member in keyof RequestMeaning]?: RequestMeaning[Member] | undefined }>
  >;
  /** Fields that the dialect reports as lost; absent means none. */
  losses?: Partial<Record<DialectId, readonly string[]>>;
  /** The part that the dialect refuses as `unsupported_content`. */
  refuses?: Partial<Record<DialectId, string>>;
}

/** Returns a user message of one text. */
export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

/** The smallest possible request. */
export const question = { messages: [user("Weather?")] };

/** The same in chat. */
export const wireQuestion = { messages: [{ role: "user", content: "Weather?" }] };

/** The same in Gemini. */
export const geminiQuestion = { contents: [{ role: "user", parts: [{ text: "Weather?" }] }] };

/** The same in Converse. */
export const converseQuestion = { messages: [{ role: "user", content: [{ text: "Weather?" }] }] };

/** A JSON Schema with one required string. */
export const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

/** The same in Responses. */
export const responsesQuestion = {
  input: [{ type: "message", role: "user", content: "Weather?" }],
};
