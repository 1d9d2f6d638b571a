import { expect, test } from "bun:test";
import { withoutSeals } from "./refused-seals.ts";

const message = "messages.1.content.0: Invalid `signature` in `thinking` block";
const thought = { type: "thinking", thinking: "Hm.", signature: "s" };
const text = { type: "text", text: "Hello." };
const call = { type: "tool_use", id: "t", name: "look_up", input: {} };
const result = { type: "tool_result", tool_use_id: "t", content: "sunny" };
const user = { role: "user", content: "Hi" };
const says = (...content: object[]) => ({ role: "assistant", content });
const results = { role: "user", content: [result] };
const thinking = { type: "enabled", budget_tokens: 1_024 };
const clearing = { edits: [{ type: "clear_thinking_20251015" }, { type: "clear_tool_uses" }] };

const unsealed = (fields: object, refusal: string = message) => {
  const text = JSON.stringify(fields);
  const found = withoutSeals(text, { refusal: { code: null, message: refusal } });
  return found && { ...found, text: JSON.parse(found.text) as object };
};

test("a turn of thoughts alone goes as a whole", () => {
  const messages = [user, says(thought), user, says(text), user];
  expect(unsealed({ messages })).toEqual({
    text: { messages: [user, user, says(text), user] },
    seals: ["s"],
    stopsThinking: false,
  });
});

test("calls under way without thoughts are sent without thinking, nor is thinking cleared", () => {
  const messages = [user, says(thought, call), results];
  expect(unsealed({ messages, thinking, context_management: clearing })).toEqual({
    text: {
      messages: [user, says(call), results],
      context_management: { edits: [{ type: "clear_tool_uses" }] },
    },
    seals: ["s"],
    stopsThinking: true,
  });
  const adaptive = { type: "adaptive" };
  expect(unsealed({ messages, thinking: adaptive })?.text).toHaveProperty("thinking", adaptive);
});

test("the turn under way keeps its thoughts unless the refusal names them", () => {
  const messages = [user, says(thought, text), user, says(thought, call), results];
  expect(unsealed({ messages, thinking })?.text).toEqual({
    messages: [user, says(text), user, says(thought, call), results],
    thinking,
  });
  const named = unsealed({ messages, thinking }, message.replace("1", "3"));
  expect(named?.text).toEqual({ messages: [user, says(text), user, says(call), results] });
});

test.each([
  ["messages.3.content.2: Invalid signature in thinking block", true],
  ["messages.1.content.0: Invalid `data` in `redacted_thinking` block", true],
  [
    "messages.1.content.2: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    true,
  ],
  ["messages.1.content.0: Invalid `text` in `text` block", false],
  ["", false],
])("%j is about a seal: %p", (refusal, isOne) => {
  const messages = [user, says({ type: "redacted_thinking", data: "x" }, text), user];
  expect(unsealed({ messages }, refusal) !== undefined).toBe(isOne);
});

test("a request without thoughts is not sent again", () => {
  expect(unsealed({ messages: [user, says(text), user] })).toBeUndefined();
});

test("seals that were refused before go wherever they are", () => {
  const own = { ...thought, signature: "own" };
  const messages = [user, says(thought, text), user, says(own, call), results];
  const found = withoutSeals(JSON.stringify({ messages }), { isRefused: (seal) => seal === "s" });
  expect(found?.seals).toEqual(["s"]);
  expect(JSON.parse(found?.text ?? "")).toEqual({
    messages: [user, says(text), user, says(own, call), results],
  });
  const none = withoutSeals(JSON.stringify({ messages }), { isRefused: () => false });
  expect(none).toBeUndefined();
});
