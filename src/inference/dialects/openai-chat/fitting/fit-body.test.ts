import { expect, test } from "bun:test";
import { fitBody, fitMessages } from "./fit-body.ts";

const asked = { role: "user", content: "Hello" };
const called = { role: "assistant", content: null, tool_calls: [{ id: "a", type: "function" }] };

test("turns of reasoning alone are left out where the upstream refuses them", () => {
  const thought = { role: "assistant", content: "", reasoning_content: "Hm." };
  const messages = [asked, thought, { role: "assistant", content: [] }, called, asked];
  const fitted = fitMessages(messages, {
    deviations: { refusesEmptyTurns: true },
    reasons: false,
    upstreamModel: "m",
  });
  expect(fitted).toEqual([asked, called, asked]);
  expect(fitMessages(messages, { deviations: {}, reasons: true, upstreamModel: "m" })).toBe(
    messages,
  );
});

test.each([
  ["declares reasoning", true, "no thoughts yet", true],
  ["declares nothing, and has reasoned", false, "Hm.", true],
  ["declares nothing, and has not reasoned", false, "", false],
])("calls need reasoning beside them where a model %s", (_, reasons, text, isAdded) => {
  const first = { ...called, reasoning_content: text };
  const [, , last] = fitMessages([asked, first, called], {
    deviations: { reasoningBesideCalls: true },
    reasons,
    upstreamModel: "m",
  });
  expect(last).toEqual(isAdded ? { ...called, reasoning_content: "" } : called);
});

test.each<[model: string, reasons: boolean, sent: object, lost: string[], least: object]>([
  ["kimi-k2.5", true, { thinking: { type: "disabled" } }, [], {}],
  ["kimi-k2.7-code", true, {}, ["reasoning"], {}],
  ["kimi-k2-0905-preview", false, { reasoning_effort: "none" }, [], {}],
  ["glm-5.3", true, { reasoning_effort: "low" }, ["reasoning"], { leastEffort: "low" }],
])(
  "reasoning is off by the upstream's own switch, where it has one: %s",
  (model, reasons, sent, lost, least) => {
    const messages = [asked];
    const { body, losses } = fitBody(
      { messages, reasoning_effort: "none" },
      {
        deviations: { thinkingSwitch: { alwaysReasons: /k2\.7|glm-5\.3/, ...least } },
        reasons,
        upstreamModel: model,
      },
    );
    expect(body).toEqual({ messages, ...sent });
    expect(losses.map(({ field }) => field)).toEqual(lost);
  },
);

test.each([
  [{ content: "So.", reasoning_content: "Hm." }, [{ type: "text", text: "So." }]],
  [{ content: null, reasoning: "Hm." }, []],
])(
  "earlier reasoning is a part of the content where the upstream has it there: %j",
  (said, text) => {
    const rules = {
      deviations: {
        reasoningReplay: "content",
        unsupportedMessageFields: ["reasoning", "reasoning_content"],
      },
      reasons: true,
      upstreamModel: "m",
    } as const;
    const thinking = [{ type: "text", text: "Hm." }];
    expect(fitMessages([asked, { role: "assistant", ...said }], rules)).toEqual([
      asked,
      { role: "assistant", content: [{ type: "thinking", thinking }, ...text] },
    ]);
  },
);

test.each([
  ["mistralai/Mistral-Small-4-119B-2603", true],
  ["meta/llama-4-maverick", false],
])(
  "a turn stands between a result and the user where %s needs one: %p",
  (upstreamModel, isAdded) => {
    const result = { role: "tool", tool_call_id: "a", content: "sunny" };
    const fitted = fitMessages([asked, called, result, asked], {
      deviations: { answersResults: "mistral" },
      reasons: false,
      upstreamModel,
    });
    const between = isAdded ? [{ role: "assistant", content: "Done." }] : [];
    expect(fitted).toEqual([asked, called, result, ...between, asked]);
  },
);
