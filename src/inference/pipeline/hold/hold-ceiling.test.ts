import { expect, test } from "bun:test";
import { openrouter as provider } from "../../providers/vendors/openrouter.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { outputCap } from "./hold-ceiling.ts";

test.each([
  ["openai/gpt-5", 16],
  ["anthropic/claude-sonnet-4.5", 1],
])("a cap of 1 is held as what %s is asked for: %p", (upstreamModel, held) => {
  const candidate = { model: {}, route: { provider, upstreamModel } } as unknown as Candidate;
  expect(outputCap(candidate, { maxOutputTokens: 1, inputTokens: 9, choices: 1 })).toBe(held);
});
