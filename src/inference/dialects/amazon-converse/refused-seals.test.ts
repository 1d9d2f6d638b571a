import { expect, test } from "bun:test";
import { withoutSeals } from "./refused-seals.ts";

const thought = (signature: string) => ({
  reasoningContent: { reasoningText: { text: "Hm.", signature } },
});
const redacted = { reasoningContent: { redactedContent: "r" } };
const text = { text: "Hello." };
const call = { toolUse: { toolUseId: "t", name: "look_up", input: {} } };
const user = { role: "user", content: [{ text: "Hi" }] };
const says = (...content: object[]) => ({ role: "assistant", content });
const results = { role: "user", content: [{ toolResult: { toolUseId: "t", content: [] } }] };
const additionalModelRequestFields = { thinking: { type: "enabled", budget_tokens: 1_024 }, a: 1 };
const refusal = {
  code: null,
  message:
    "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block",
};

test("a refusal takes the thoughts of earlier turns out", () => {
  const messages = [user, says(thought("s"), text), user, says(thought("own"), call), results];
  const found = withoutSeals(JSON.stringify({ messages }), { refusal });
  expect(found).toMatchObject({ seals: ["s"], stopsThinking: false });
  expect(JSON.parse(found?.text ?? "")).toEqual({
    messages: [user, says(text), user, says(thought("own"), call), results],
  });
});

test("calls under way without thoughts are sent without thinking", () => {
  const messages = [user, says(redacted, call), results];
  const body = { messages, additionalModelRequestFields };
  const found = withoutSeals(JSON.stringify(body), { refusal });
  expect(found).toMatchObject({ seals: ["r"], stopsThinking: true });
  expect(JSON.parse(found?.text ?? "")).toEqual({
    messages: [user, says(call), results],
    additionalModelRequestFields: { a: 1 },
  });
});

test("a turn of thoughts alone leaves those around it as one", () => {
  const messages = [user, says(thought("s")), { ...user, content: [text] }];
  const found = withoutSeals(JSON.stringify({ messages }), { refusal });
  expect(JSON.parse(found?.text ?? "")).toEqual({
    messages: [{ role: "user", content: [...user.content, text] }],
  });
});

test("another refusal is not about seals", () => {
  const messages = [user, says(thought("s"), text), user];
  const other = { refusal: { code: null, message: "The text field is blank." } };
  expect(withoutSeals(JSON.stringify({ messages }), other)).toBeUndefined();
});
