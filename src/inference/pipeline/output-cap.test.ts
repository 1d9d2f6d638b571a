import { expect, test } from "bun:test";
import { adaptIn, routeIn } from "../../../test/support/in-process.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type { ProviderDeviations } from "../providers/provider-definition.ts";

const messages = [{ role: "user", content: "Hi" }];
const asked = {
  "chat, newer name": ["openai-chat", { messages, max_completion_tokens: 20 }],
  "chat, older name": ["openai-chat", { messages, max_tokens: 20 }],
  "chat, both names": ["openai-chat", { messages, max_tokens: 90, max_completion_tokens: 20 }],
  Messages: ["anthropic-messages", { messages, max_tokens: 20 }],
  Responses: ["openai-responses", { input: "Hi", max_output_tokens: 20 }],
} satisfies Record<
  string,
  readonly ["openai-chat" | "anthropic-messages" | "openai-responses", object]
>;

const capFields = ["max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig"];

/** Every field of the upstream's body that bounds its output. */
function capsSent(
  name: keyof typeof asked,
  {
    upstream,
    deviations,
    stream,
  }: { upstream: DialectId; deviations: ProviderDeviations; stream: boolean },
): object {
  const [client, body] = asked[name];
  const { model, route } = routeIn(upstream);
  const own = { model, route: { ...route, provider: { ...route.provider, deviations } } };
  const { requestText } = adaptIn(client, {
    body: { model: "acme/large", stream, ...body },
    route: own,
  });
  const sent = JSON.parse(requestText) as Record<string, unknown>;
  return Object.fromEntries(
    capFields.filter((field) => field in sent).map((field) => [field, sent[field]]),
  );
}

const chatServers = [
  ["a server without deviations", {}, { max_tokens: 20 }],
  ["a server with max_tokens", { maxTokensField: "max_tokens" }, { max_tokens: 20 }],
  [
    "a server with max_completion_tokens",
    { maxTokensField: "max_completion_tokens" },
    { max_completion_tokens: 20 },
  ],
] as const;

for (const stream of [false, true]) {
  for (const name of Object.keys(asked) as (keyof typeof asked)[]) {
    test.each(chatServers)(
      `the output cap of ${name}, stream ${stream}, is sent to %s`,
      (_, deviations, caps) => {
        expect(capsSent(name, { upstream: "openai-chat", deviations, stream })).toEqual(caps);
      },
    );

    test(`the output cap of ${name}, stream ${stream}, is sent in other dialects`, () => {
      expect(capsSent(name, { upstream: "anthropic-messages", deviations: {}, stream })).toEqual({
        max_tokens: 20,
      });
      expect(capsSent(name, { upstream: "openai-responses", deviations: {}, stream })).toEqual({
        max_output_tokens: 20,
      });
      expect(capsSent(name, { upstream: "google-generate", deviations: {}, stream })).toMatchObject(
        {
          generationConfig: { maxOutputTokens: 20 },
        },
      );
    });
  }
}

test("a server with both names gets the client's name, or max_completion_tokens from other dialects", () => {
  const deviations: ProviderDeviations = { maxTokensField: "either" };
  const sent = (name: keyof typeof asked): object =>
    capsSent(name, { upstream: "openai-chat", deviations, stream: false });
  expect(sent("chat, newer name")).toEqual({ max_completion_tokens: 20 });
  expect(sent("chat, older name")).toEqual({ max_tokens: 20 });
  expect(sent("Messages")).toEqual({ max_completion_tokens: 20 });
});

test.each([
  [8_000, { maxOutputTokens: 8_000, thinkingBudget: 6_400 }],
  [1_500, { maxOutputTokens: 1_500, thinkingBudget: 1_200 }],
  [1_200, { maxOutputTokens: 1_200, thinkingBudget: 1_024 }],
  [1_025, { maxOutputTokens: 1_025, thinkingBudget: 1_024 }],
])(
  "Gemini's thinking budget is lowered to fit an output cap of %p, but not below 1,024",
  (outputCap, expected) => {
    const { model, route } = routeIn("google-generate");
    const thinker = { model, route: { ...route, upstreamModel: "gemini-2.5-pro" }, outputCap };
    for (const [client, reasoning] of [
      ["openai-chat", { reasoning: { max_tokens: 7_900 } }],
      ["openai-chat", { reasoning_effort: "high" }],
      [
        "anthropic-messages",
        { thinking: { type: "enabled", budget_tokens: 7_900 }, max_tokens: 8_192 },
      ],
    ] as const) {
      const { requestText } = adaptIn(client, {
        body: { model: "acme/large", messages, ...reasoning },
        route: thinker,
      });
      const { generationConfig } = JSON.parse(requestText) as {
        generationConfig: { maxOutputTokens: number; thinkingConfig: { thinkingBudget: number } };
      };
      const {
        maxOutputTokens,
        thinkingConfig: { thinkingBudget },
      } = generationConfig;
      // A budget that was named and is lower than the cap stays as it is.
      const budget =
        outputCap > 7_900 && "reasoning" in reasoning ? 7_900 : expected.thinkingBudget;
      expect({ maxOutputTokens, thinkingBudget }).toEqual({ ...expected, thinkingBudget: budget });
    }
  },
);
