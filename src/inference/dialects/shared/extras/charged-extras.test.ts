import { expect, test } from "bun:test";
import { askedExtras, mostCalls, sentExtras } from "./charged-extras.ts";

test.each([
  [{ tools: [{ codeExecution: {} }, { functionDeclarations: [] }] }, undefined],
  [{ tools: [{ codeExecution: {}, googleSearch: {} }] }, ["web_search"]],
  [{ tools: [{ fileSearch: {} }] }, ["file_search"]],
  [{ tools: [{ type: "code_execution" }] }, ["code_execution"]],
])("tools that are charged apart in %j", (body, names) => {
  expect(askedExtras(body)?.tools.map(({ name }) => name)).toEqual(names as string[]);
});

const searching = { web_search_options: {} };
const bound = { tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }] };
const counted = { tools: [{ type: "web_search" }], max_tool_calls: 2 };

test.each([
  [searching, "openai-chat", "openai-chat", 1],
  [searching, "openai-chat", "openai-responses", 10],
  [searching, "openai-chat", "anthropic-messages", 10],
  [bound, "anthropic-messages", "anthropic-messages", 2],
  [bound, "anthropic-messages", "openai-responses", 2],
  [bound, "anthropic-messages", "google-generate", 10],
  [bound, "anthropic-messages", "openai-chat", undefined],
  [counted, "openai-responses", "anthropic-messages", 10],
] as const)("searches of %j from %s, held for %s: %p", (body, client, upstream, most) => {
  const price = { base: { searches: 1n } };
  const sides = { client, upstream, deviations: {}, price, searchesBesideFunctions: true };
  const asked = askedExtras(body) ?? { levels: {}, tools: [], besideFunctions: false };
  const sent = sentExtras(asked, sides);
  expect(sent && mostCalls(sent).searches).toBe(most);
});
