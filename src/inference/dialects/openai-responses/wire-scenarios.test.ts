import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { ClientDialect } from "../dialect.ts";
import { openaiChat } from "../openai-chat/index.ts";
import { openaiResponses } from "./index.ts";

/**
 * What gateways got wrong between Responses and chat, and how it is right; the reports are named by
 * repository and number, to be found there.
 */
const recorded = {
  responses: new Map(readCassettes("openai-responses").map((one) => [one.name, one.parts])),
  chat: new Map(readCassettes("openai-chat").map((one) => [one.name, one.parts])),
};

function told(client: ClientDialect, parts: readonly StreamPart[]): JsonObject[] {
  const encoder = client.createStreamEncoder({ id: "resp_1" });
  return parts
    .flatMap((part) => encoder.encode(part))
    .flatMap((frame) => {
      const data = /^data: (.*)$/m.exec(frame)?.[1] ?? "";
      return data.startsWith("{") ? [JSON.parse(data) as JsonObject] : [];
    });
}

interface ChatDelta {
  content?: string;
  reasoning_content?: string;
  tool_calls?: {
    index: number;
    id?: string;
    function?: { name?: string; arguments?: string };
    custom?: { input?: string };
  }[];
}
interface ChatChoice {
  delta: ChatDelta;
  finish_reason: string | null;
}

const toChat = (name: string): ChatChoice[] =>
  told(openaiChat, recorded.responses.get(name) ?? []).flatMap(
    (chunk) => (chunk.choices ?? []) as unknown as ChatChoice[],
  );
const toResponses = (name: string): JsonObject[] =>
  told(openaiResponses, recorded.chat.get(name) ?? []);
const typesOf = (events: readonly JsonObject[]): unknown[] => events.map((event) => event.type);

/** What arrives of each call, by its index. */
function callsOf(
  choices: readonly ChatChoice[],
): { id: string; name: string; arguments: string }[] {
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const one of choices.flatMap(({ delta }) => delta.tool_calls ?? [])) {
    const call = (calls[one.index] ??= { id: "", name: "", arguments: "" });
    call.id += one.id ?? "";
    call.name += one.function?.name ?? "";
    call.arguments += one.function?.arguments ?? one.custom?.input ?? "";
  }
  return calls;
}

describe("a Responses upstream for a chat client", () => {
  test("counts calls from 0, whatever their output index (litellm#21331)", () => {
    expect(callsOf(toChat("parallel-calls"))).toEqual([
      { id: "call_a", name: "get_weather", arguments: '{"city":"Paris"}' },
      { id: "call_b", name: "get_time", arguments: '{"zone":"CET"}' },
    ]);
  });

  test("sends arguments of only the last event once (litellm#25321, #20711)", () => {
    expect(callsOf(toChat("arguments-only-in-done")).map((call) => call.arguments)).toEqual([
      '{"x":1}',
      '{"y":2}',
      "{}",
    ]);
  });

  test("does not double arguments that are repeated in every delta (litellm#21482)", () => {
    expect(callsOf(toChat("arguments-accumulated"))).toEqual([
      { id: "call_a", name: "f", arguments: '{"x":1}' },
    ]);
  });

  test("separates two messages (litellm#41109)", () => {
    expect(
      toChat("two-messages")
        .map(({ delta }) => delta.content ?? "")
        .join(""),
    ).toBe("Looking.\n\nFound.");
  });

  test("ends an incomplete response with length and keeps its usage (litellm#34351)", () => {
    const chunks = told(openaiChat, recorded.responses.get("incomplete") ?? []);
    expect(toChat("incomplete").at(-1)?.finish_reason).toBe("length");
    expect(chunks.at(-1)?.usage).toMatchObject({
      prompt_tokens: 20,
      completion_tokens: 9,
      total_tokens: 29,
    });
  });

  test("ends calls with tool_calls although the upstream reports completed", () => {
    expect(toChat("parallel-calls").at(-1)?.finish_reason).toBe("tool_calls");
  });
});

describe("a chat upstream for a Responses client", () => {
  test("sends reasoning as an item before the text (litellm#41185, sub2api#2875)", () => {
    const events = toResponses("reasoning-content");
    const added = events.filter((event) => event.type === "response.output_item.added");
    expect(added.map((event) => [(event.item as JsonObject).type, event.output_index])).toEqual([
      ["reasoning", 0],
      ["message", 1],
    ]);
    const types = typesOf(events);
    expect(types.indexOf("response.reasoning_summary_part.added")).toBeLessThan(
      types.indexOf("response.reasoning_summary_text.delta"),
    );
    expect(types.indexOf("response.output_item.done")).toBeLessThan(
      types.indexOf("response.output_text.delta"),
    );
  });

  test("sends both reasoning and text of one chunk (litellm#36327)", () => {
    const events = toResponses("reasoning-and-content-in-one-chunk");
    const output = (events.at(-1)?.response as JsonObject).output as JsonObject[];
    expect(output.map((item) => item.type)).toEqual(["reasoning", "message"]);
  });

  test("sends no message item for calls without text (litellm#37852)", () => {
    const events = toResponses("all-calls-at-index-0");
    expect(events.some((event) => (event.item as JsonObject | undefined)?.type === "message")).toBe(
      false,
    );
    expect(
      events
        .filter((event) => event.type === "response.output_item.added")
        .map((event) => event.output_index),
    ).toEqual([0, 1]);
  });

  test("has the model in the first event, and done events for texts (CLIProxyAPI#4479, ogx#5309)", () => {
    const events = toResponses("plain-text");
    expect(events[0]?.response).toMatchObject({
      id: "resp_1",
      model: "large-v2",
      status: "in_progress",
    });
    expect(typesOf(events)).toContain("response.output_text.done");
  });

  test("never looks complete after a cut or an error, with the provider's message (litellm PR#40243)", () => {
    for (const name of [
      "cut-stream",
      "cut-inside-a-call",
      "error-mid-stream",
      "error-event",
      "bad-json",
    ]) {
      const events = toResponses(name);
      expect(typesOf(events.slice(-2)), name).toEqual(["error", "response.failed"]);
      expect(typesOf(events)).not.toContain("response.completed");
    }
  });

  test("has no event ids and no terminator", () => {
    const encoder = openaiResponses.createStreamEncoder();
    const frames = (recorded.chat.get("plain-text") ?? [])
      .flatMap((part) => encoder.encode(part))
      .join("");
    expect(frames).not.toMatch(/^id:|\[DONE\]/m);
  });

  test("restores the call of a custom tool (codex-relay#37)", () => {
    const { body, toolAliases } = openaiChat.encodeRequest(
      openaiResponses.decodeRequest({
        model: "m",
        input: "Hi",
        tools: [{ type: "custom", name: "apply_patch", format: { type: "text" } }],
      }),
      { upstreamModel: "m", stream: true, providerId: "acme" },
    );
    expect(body.tools).toMatchObject([{ type: "function", function: { name: "apply_patch" } }]);
    const decoder = openaiChat.createStreamDecoder({ toolAliases });
    const call = {
      index: 0,
      id: "call_a",
      type: "function",
      function: { name: "apply_patch", arguments: '{"input":"*** Begin"}' },
    };
    const chunk = {
      id: "c",
      choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: "tool_calls" }],
    };
    const events = told(openaiResponses, [
      ...decoder.decode({ data: JSON.stringify(chunk) }),
      ...decoder.decode({ data: "[DONE]" }),
    ]);
    expect(
      events.find((event) => event.type === "response.custom_tool_call_input.done"),
    ).toMatchObject({ input: "*** Begin" });
    expect((events.at(-1)?.response as JsonObject).output).toMatchObject([
      { type: "custom_tool_call", call_id: "call_a", input: "*** Begin" },
    ]);
  });
});

describe("a request of Codex to a chat upstream", () => {
  const codex = {
    model: "m",
    stream: true,
    store: false,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "k",
    parallel_tool_calls: false,
    reasoning: { effort: "medium", summary: "auto" },
    text: { verbosity: "low" },
    instructions: "You are Codex.",
    tools: [
      {
        type: "function",
        name: "shell",
        strict: false,
        parameters: { type: "object", properties: {} },
      },
      {
        type: "custom",
        name: "apply_patch",
        format: { type: "grammar", syntax: "lark", definition: "start: x" },
      },
      { type: "tool_search", execution: "client" },
      { type: "web_search" },
      {
        type: "namespace",
        name: "mcp",
        tools: [{ type: "function", name: "read", parameters: {} }],
      },
    ],
    tool_choice: "auto",
    input: [
      { type: "additional_tools", tools: [{ type: "function", name: "late", parameters: {} }] },
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Sandboxed." }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
      { type: "function_call", call_id: "call_1", name: "shell", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "call_1",
        output: [
          { type: "input_text", text: "ok" },
          { type: "input_image", image_url: "data:image/png;base64,AAAA" },
        ],
      },
    ],
  };

  test("is encoded except for fields without an equivalent (chatgpt-codex-proxy#9, new-api#7498)", () => {
    const { body, losses } = openaiChat.encodeRequest(openaiResponses.decodeRequest(codex), {
      upstreamModel: "m",
      stream: true,
      providerId: "acme",
    });
    expect(body.messages).toMatchObject([
      { role: "system", content: "You are Codex.\n\nSandboxed." },
      { role: "user", content: "Hi" },
      { role: "assistant", tool_calls: [{ id: "call_1" }] },
      { role: "tool", tool_call_id: "call_1", content: "ok\n[image 1 attached below]" },
      {
        role: "user",
        content: [
          { type: "text", text: "[image 1, from the result of tool call call_1]" },
          { type: "image_url" },
        ],
      },
    ]);
    expect(
      (body.tools as { function: { name: string } }[]).map((tool) => tool.function.name),
    ).toEqual(["shell", "apply_patch", "mcp__read", "late"]);
    expect(losses.map((loss) => loss.field)).toEqual(
      expect.arrayContaining(["tools[2]", "tools[3]"]),
    );
    expect(losses.map((loss) => loss.field)).not.toContain("include");
  });

  test("has a loss, and no empty turn, for a turn that only its provider can read", () => {
    const input = [
      { role: "user", content: "a" },
      { type: "web_search_call", id: "ws_1" },
      { role: "user", content: "b" },
    ];
    const { body, losses } = openaiChat.encodeRequest(
      openaiResponses.decodeRequest({ model: "m", input }),
      { upstreamModel: "m", stream: false, providerId: "acme" },
    );
    expect(body.messages).toEqual([
      { role: "user", content: "a" },
      { role: "user", content: "b" },
    ]);
    expect(losses.map((loss) => loss.field)).toEqual(["input[1]"]);
  });

  test("does not send reasoning encrypted by one provider to another (bifrost PR#5892)", () => {
    const [event] = told(openaiResponses, [
      { type: "reasoning-start", choiceIndex: 0, itemIndex: 0 },
      { type: "reasoning-delta", choiceIndex: 0, itemIndex: 0, text: "t" },
      {
        type: "reasoning-end",
        choiceIndex: 0,
        itemIndex: 0,
        signature: "s",
        provenance: { providerId: "anthropic" },
      },
      { type: "finish", choiceIndex: 0, finish: { reason: "stop" } },
      { type: "response-end" },
    ]).slice(-1);
    const item = ((event?.response as JsonObject).output as JsonObject[])[0] ?? {};
    const request = openaiResponses.decodeRequest({
      model: "m",
      input: [item, { role: "user", content: "Hi" }],
    });
    expect(request.messages[0]).toMatchObject({
      parts: [
        { type: "reasoning", text: "t", signature: "s", provenance: { providerId: "anthropic" } },
      ],
    });
    const { body } = openaiResponses.encodeRequest(request, {
      upstreamModel: "m",
      stream: false,
      providerId: "openai",
    });
    expect(JSON.stringify(body)).not.toContain('"reasoning"');
  });
});
