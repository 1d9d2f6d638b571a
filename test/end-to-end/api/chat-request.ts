/** A small chat request; what is named replaces or adds fields. */
export const chatRequest = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: "acme/large",
  messages: [{ role: "user", content: "Hello" }],
  ...changes,
});
