import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, Message } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodedRequest } from "../dialect.ts";
import { encodeRequest } from "./encode-request.ts";

/** A request as another dialect's client would have sent it, for an upstream without deviations. */
const encode = (fields: Partial<CanonicalRequest>): EncodedRequest =>
  encodeRequest(
    { dialect: "anthropic-messages", model: "claude", stream: false, messages: [], ...fields },
    { upstreamModel: "large-v2", stream: false, providerId: "acme" },
  );

const text = (value: string): { type: "text"; text: string } => ({ type: "text", text: value });
const assistant = (...parts: AssistantPart[]): Message => ({ role: "assistant", parts });
const call = (id: string, name = "f"): AssistantPart => ({
  type: "tool-call",
  kind: "function",
  id,
  name,
  arguments: "{}",
});
const result = (id: string, value: string): Message => ({
  role: "tool",
  toolCallId: id,
  parts: [text(value)],
});

describe("tools", () => {
  test("always have an object schema", () => {
    const { body } = encode({
      tools: [
        { type: "function", name: "a" },
        { type: "function", name: "b", parameters: { type: "object" } },
        { type: "function", name: "c", parameters: { $schema: "x", anyOf: [] } },
      ],
    });
    expect(
      (body.tools as JsonObject[]).map((tool) => (tool.function as JsonObject).parameters),
    ).toEqual([
      { type: "object", properties: {} },
      { type: "object", properties: {} },
      { $schema: "x", type: "object", properties: {} },
    ]);
  });

  test("of type custom are wrapped in definitions, history and choice, with an alias", () => {
    const { body, toolAliases, losses } = encode({
      dialect: "openai-responses",
      tools: [
        {
          type: "custom",
          name: "apply_patch",
          description: "Edits.",
          format: { type: "grammar", syntax: "lark", definition: "start: x" },
        },
      ],
      toolChoice: { type: "tool", kind: "custom", name: "apply_patch" },
      messages: [
        assistant({
          type: "tool-call",
          kind: "custom",
          id: "a",
          name: "apply_patch",
          arguments: '*** "Begin"',
        }),
        { role: "tool", kind: "custom", toolCallId: "a", parts: [] },
      ],
    });
    expect(body.tools).toEqual([
      {
        type: "function",
        function: {
          name: "apply_patch",
          description: "Edits.\n\nThe input must follow this lark grammar:\nstart: x",
          parameters: {
            type: "object",
            properties: { input: { type: "string", description: "The tool's whole input." } },
            required: ["input"],
            additionalProperties: false,
          },
        },
      },
    ]);
    expect(body.tool_choice).toEqual({ type: "function", function: { name: "apply_patch" } });
    expect(body.messages).toMatchObject([
      {
        tool_calls: [
          {
            type: "function",
            function: { name: "apply_patch", arguments: '{"input":"*** \\"Begin\\""}' },
          },
        ],
      },
      {},
    ]);
    expect([...toolAliases]).toEqual([
      ["apply_patch", { name: "apply_patch", unwrapsInput: true }],
    ]);
    expect(losses.map((loss) => loss.field)).toEqual(["tools.apply_patch.format"]);
  });

  test("with invalid names are renamed everywhere, with an alias", () => {
    const long = `mcp__${"x".repeat(80)}`;
    const { body, toolAliases } = encode({
      tools: [
        { type: "function", name: long },
        { type: "function", name: "find", namespace: "files" },
      ],
      toolChoice: { type: "tool", kind: "function", name: long },
      messages: [assistant(call("a", long)), result("a", "x")],
    });
    const [wire, namespaced] = (body.tools as JsonObject[]).map((tool) =>
      String((tool.function as JsonObject).name),
    );
    expect(wire).toMatch(/^mcp__x{50}_[0-9a-f]{8}$/);
    expect(body.tool_choice).toEqual({ type: "function", function: { name: wire } });
    expect(body.messages).toMatchObject([{ tool_calls: [{ function: { name: wire } }] }, {}]);
    expect([...toolAliases]).toEqual([
      [String(wire), { name: long }],
      ["files__find", { name: "find", namespace: "files" }],
    ]);
    expect(namespaced).toBe("files__find");
  });

  test("are reduced to the allowed tools", () => {
    const { body } = encode({
      tools: [
        { type: "function", name: "a" },
        { type: "function", name: "b" },
      ],
      toolChoice: { type: "allowed", mode: "required", tools: [{ type: "function", name: "b" }] },
    });
    expect((body.tools as JsonObject[]).length).toBe(1);
    expect(body.tool_choice).toBe("required");
  });

  test("omit the tool choice if no tool is left", () => {
    const { body, losses } = encode({
      tools: [{ type: "hosted", dialect: "openai-responses", value: { type: "web_search" } }],
      toolChoice: { type: "required" },
      parallelToolCalls: false,
    });
    expect(Object.keys(body)).toEqual(["model", "messages"]);
    expect(losses).toEqual([
      { field: "tools[0]", reason: "a web_search that openai-responses runs itself" },
    ]);
  });

  test("use legacy fields for legacy clients", () => {
    const { body } = encode({
      dialect: "openai-chat",
      legacyFunctions: true,
      tools: [{ type: "function", name: "f", parameters: { type: "object", properties: {} } }],
      toolChoice: { type: "tool", kind: "function", name: "f" },
      messages: [
        assistant(call("call_function_1")),
        { role: "tool", toolCallId: "call_function_1", name: "f", parts: [text("1")] },
      ],
    });
    expect(body).toEqual({
      model: "large-v2",
      messages: [
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "1" },
      ],
      functions: [{ name: "f", parameters: { type: "object", properties: {} } }],
      function_call: { name: "f" },
    });
  });
});
