import { expect, test } from "bun:test";
import { reconcileFinish, type Finish } from "./response.ts";

const rows: [reported: Finish | undefined, hasToolCalls: boolean, finish: Finish][] = [
  [undefined, false, { reason: "stop" }],
  [undefined, true, { reason: "tool_calls" }],
  [{ reason: "stop" }, true, { reason: "tool_calls" }],
  [{ reason: "stop_sequence", stopSequence: "x" }, true, { reason: "tool_calls" }],
  [
    { reason: "stop_sequence", stopSequence: "x" },
    false,
    { reason: "stop_sequence", stopSequence: "x" },
  ],
  [{ reason: "tool_calls" }, false, { reason: "stop" }],
  [{ reason: "length" }, true, { reason: "length" }],
  [{ reason: "content_filter" }, true, { reason: "content_filter" }],
  [{ reason: "refusal", explanation: "no" }, false, { reason: "refusal", explanation: "no" }],
];

test.each(rows)("%j with tool calls %p becomes %j", (reported, hasToolCalls, finish) => {
  expect(reconcileFinish(reported, hasToolCalls)).toEqual(finish);
});
