/** Chat-shaped wire formats that the canonical form stands between. */
export type DialectId =
  | "openai-chat"
  | "anthropic-messages"
  | "openai-responses"
  | "google-generate";
