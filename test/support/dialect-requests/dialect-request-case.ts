import type { DialectId } from "../../../src/inference/canonical/dialect-id.ts";
import type { JsonObject } from "../../../src/inference/canonical/json.ts";
import type { Message } from "../../../src/inference/canonical/message.ts";
import type { CanonicalRequest } from "../../../src/inference/canonical/request.ts";

/** A canonical request without what every request has. */
type RequestMeaning = Omit<CanonicalRequest, "dialect" | "model" | "stream">;

/**
 * What one canonical request is on each wire, and means when it is read from there. A dialect that
 * is under test stands in `wire` or in `refuses`, so that none is forgotten.
 */
export interface DialectRequestCase {
  what: string;
  canonical: RequestMeaning;
  /** Without the fields that every request of the dialect has; the table test knows those. */
  wire: Partial<Record<DialectId, JsonObject>>;
  /** Members that read otherwise, for a dialect that cannot say all of it. */
  reads?: Partial<
    Record<DialectId, { [Member in keyof RequestMeaning]?: RequestMeaning[Member] | undefined }>
  >;
  /** Fields that the dialect declares as lost; absent means none. */
  losses?: Partial<Record<DialectId, readonly string[]>>;
  /** The part that the dialect refuses as `unsupported_content`. */
  refuses?: Partial<Record<DialectId, string>>;
}

/** A user's message of one text. */
export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

/** The least that can be asked. */
export const question = { messages: [user("Weather?")] };

/** The same for chat. */
export const wireQuestion = { messages: [{ role: "user", content: "Weather?" }] };

/** The same for Gemini. */
export const geminiQuestion = { contents: [{ role: "user", parts: [{ text: "Weather?" }] }] };

/** The same for Converse. */
export const converseQuestion = { messages: [{ role: "user", content: [{ text: "Weather?" }] }] };

/** A JSON Schema of one required text. */
export const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

/** The same for Responses. */
export const responsesQuestion = {
  input: [{ type: "message", role: "user", content: "Weather?" }],
};
