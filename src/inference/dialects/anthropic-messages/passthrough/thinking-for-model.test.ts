import { expect, test } from "bun:test";
import { fitThinking } from "./thinking-for-model.ts";

const adaptive = { thinking: { type: "adaptive" } };
const budget = { thinking: { type: "enabled", budget_tokens: 2_048 } };
const effort = { output_config: { effort: "high" } };
const asked = [{ role: "user", content: "Hello" }];
const calls = (block: object) => [
  ...asked,
  { role: "assistant", content: [block, { type: "tool_use", id: "a" }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] },
];

const fitted = (upstreamModel: string, fields: Record<string, unknown>) => {
  const body: Record<string, unknown> = { max_tokens: 8_000, messages: asked, ...fields };
  const edits = new Map<string, string | undefined>();
  const { max_tokens: maxTokens } = body;
  const losses = fitThinking(
    { body, text: JSON.stringify(body) },
    { edits, upstreamModel, maxTokens },
  );
  const read = [...edits].map(([name, text]) => [name, text && JSON.parse(text)]);
  return { edits: Object.fromEntries(read) as unknown, losses: losses.map(({ field }) => field) };
};

const thinks = (tokens: number) => ({ thinking: { type: "enabled", budget_tokens: tokens } });

test.each([
  ["claude-opus-4-7", adaptive, {}],
  ["claude-opus-4-6", { ...budget, ...effort }, {}],
  ["claude-sonnet-4-5", budget, {}],
  ["glm-5", { ...adaptive, ...effort }, {}],
  ["claude-opus-4-7", { output_config: { effort: "xhigh" } }, {}],
  ["claude-opus-5", { thinking: { type: "disabled" } }, {}],
  [
    "claude-opus-5",
    { thinking: { type: "disabled" }, output_config: { effort: "max" } },
    { output_config: { effort: "high" } },
  ],
  ["claude-opus-5", { thinking: { type: "disabled" }, ...effort }, {}],
  ["claude-opus-5", { output_config: { effort: "max" } }, {}],
  ["claude-opus-5-5", { thinking: { type: "disabled" } }, { thinking: undefined }],
  ["claude-fable-5-1", { thinking: { type: "disabled" } }, { thinking: undefined }],
  ["claude-sonnet-4-6", { output_config: { effort: "max" } }, {}],
  [
    "claude-sonnet-4-6",
    { output_config: { effort: "xhigh" } },
    { output_config: { effort: "high" } },
  ],
  ["claude-opus-4-5", { output_config: { effort: "max" } }, { output_config: { effort: "high" } }],
  ["claude-opus-4-7", budget, { thinking: { type: "adaptive" } }],
  ["claude-opus-4-5", { ...adaptive, ...effort }, thinks(6_400)],
  ["claude-sonnet-4-5", { ...adaptive, ...effort }, { ...thinks(6_400), output_config: undefined }],
  ["claude-haiku-4-5-20251001", adaptive, thinks(4_096)],
  ["claude-haiku-4-5", { ...adaptive, max_tokens: 1_024 }, { thinking: undefined }],
  ["claude-haiku-4-5", { ...adaptive, tool_choice: { type: "any" } }, { thinking: undefined }],
  [
    "claude-haiku-4-5",
    { ...adaptive, messages: calls({ type: "text", text: "Looking." }) },
    { thinking: undefined },
  ],
  [
    "claude-haiku-4-5",
    { ...adaptive, messages: calls({ type: "thinking", signature: "s" }) },
    thinks(4_096),
  ],
])("thinking towards %s: %j becomes %j", (model, fields, edits) => {
  expect(fitted(model, fields).edits).toEqual(edits);
});

test("what changes is named, and other members of output_config stay", () => {
  const output_config = { effort: "high", format: { type: "json_schema" } };
  expect(fitted("claude-haiku-4-5", { ...adaptive, output_config })).toEqual({
    edits: { ...thinks(6_400), output_config: { format: { type: "json_schema" } } },
    losses: ["output_config.effort", "thinking"],
  });
});
