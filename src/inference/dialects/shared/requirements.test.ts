import { describe, expect, test } from "bun:test";
import { needsOf } from "./requirements.ts";

const message = (...content: unknown[]) => ({ messages: [{ role: "user", content }] });
const text = { type: "text", text: "hi" };

describe("required inputs", () => {
  test.each<[string, Record<string, unknown>, string[]]>([
    ["chat: text", message(text), []],
    ["chat: text as a string", { messages: [{ role: "user", content: "an image" }] }, []],
    [
      "chat: an image",
      message(text, { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }),
      ["vision"],
    ],
    ["chat: audio", message({ type: "input_audio", input_audio: {} }), ["audio-input"]],
    ["chat: a file", message({ type: "file", file: {} }), ["document-input"]],
    [
      "chat: an image and a file",
      message({ type: "image_url" }, { type: "file" }),
      ["document-input", "vision"],
    ],
    ["messages: an image", message({ type: "image", source: {} }), ["vision"]],
    [
      "messages: an image in a tool result",
      message({ type: "tool_result", content: [{ type: "image", source: {} }] }),
      ["vision"],
    ],
    ["messages: a document", message({ type: "document", source: {} }), ["document-input"]],
    [
      "modalities of the answer",
      { ...message(text), modalities: ["text", "Image", "audio", 3] },
      ["audio-output", "image-generation"],
    ],
    ["responses: text", { input: "an image" }, []],
    [
      "responses: an image",
      { input: [{ role: "user", content: [{ type: "input_image" }] }] },
      ["vision"],
    ],
    [
      "responses: an image in a tool output",
      { input: [{ type: "function_call_output", output: [{ type: "input_image" }] }] },
      ["vision"],
    ],
    [
      "the schema of a tool that mentions images",
      { ...message(text), tools: [{ type: "image" }] },
      [],
    ],
    [
      "messages of an invalid shape",
      { messages: [null, 3, { content: null }], input: { type: 7 } },
      [],
    ],
  ])("%s", (_, body, expected) => {
    expect([...needsOf(body).kinds].sort()).toEqual(expected as never);
  });
});

describe("required effort", () => {
  test.each<[string, Record<string, unknown>, string | undefined]>([
    ["none", {}, undefined],
    ["flat", { reasoning_effort: "Low" }, "low"],
    ["nested", { reasoning: { effort: "high" } }, "high"],
    ["disabled", { reasoning: { enabled: false, effort: "high" } }, "none"],
    ["Anthropic's", { output_config: { effort: "max" } }, "max"],
    ["thinking", { thinking: { type: "enabled", budget_tokens: 1 } }, "high"],
    ["adaptive thinking", { thinking: { type: "adaptive" } }, undefined],
    ["disabled thinking", { thinking: { type: "disabled" } }, "none"],
    [
      "disabled thinking with an effort",
      { thinking: { type: "disabled" }, output_config: { effort: "high" } },
      "none",
    ],
    ["invalid", { reasoning_effort: 3, reasoning: "much", thinking: null }, undefined],
  ])("%s", (_, body, expected) => {
    expect(needsOf(body).effort).toBe(expected as never);
  });
});
