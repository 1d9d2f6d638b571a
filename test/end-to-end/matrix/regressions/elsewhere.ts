const matrix = "test/end-to-end/matrix";
const scenarios = "test/end-to-end/scenarios";

/** Where the numbers are tested that are not in the tables here, or not in them alone. */
export const elsewhere: Readonly<Record<string, readonly string[]>> = {
  C38: [`${matrix}/byte-splits.test.ts`, `${scenarios}/byte-splits.test.ts`],
  C39: [
    `${matrix}/faults-on-the-only-provider.test.ts`,
    "src/inference/upstream/sse-decoder.test.ts",
  ],
  C40: [`${matrix}/faults-on-the-only-provider.test.ts`],
  C41: [`${matrix}/support/chat-client.ts`, `${scenarios}/keep-alive.test.ts`],
  C42: ["src/inference/dialects/anthropic-messages/passthrough/passthrough-stream.test.ts"],
  C43: [`${matrix}/faults-on-the-only-provider.test.ts`, `${scenarios}/keep-alive.test.ts`],
  C45: [`${matrix}/faults-on-the-only-provider.test.ts`],
  C46: [`${matrix}/faults-on-the-only-provider.test.ts`],
  C47: [`${matrix}/faults-before-another-dialect.test.ts`],
  C48: [`${matrix}/faults-on-the-only-provider.test.ts`],
  C49: [`${matrix}/leaving-clients.test.ts`],
  C50: [`${matrix}/faults-on-the-only-provider.test.ts`],
  C51: [`${scenarios}/slow-clients.test.ts`],
  C55: [`${matrix}/passthrough-bytes.test.ts`],
  C67: [`${matrix}/pairs/text.ts`],
  C68: [`${matrix}/pairs/tool-results.ts`],
  C69: [`${matrix}/pairs/tool-results.ts`],
  C74: [`${matrix}/reasoning-over-turns.test.ts`],
  C76: [`${matrix}/reasoning-over-turns.test.ts`],
  C78: [`${matrix}/pairs/thinking-and-output.ts`],
  C81: ["test/end-to-end/api/count-tokens.test.ts"],
  C82: ["src/inference/providers/endpoint.test.ts"],
  C84: [`${matrix}/pairs/thinking-and-output.ts`],
  C85: ["src/inference/dialects/anthropic-messages/encode-request.test.ts"],
  C86: [`${matrix}/error-origin.test.ts`],
};

/** What is not of these surfaces, each with the reason. */
export const notOurs: Readonly<Record<string, string>> = {
  C80: "embeddings",
};
