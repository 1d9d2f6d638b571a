import { describe, expect, test } from "bun:test";
import type { OriginalRequest, ShownAnswer, TargetRoute } from "../../shared/exchange.ts";
import { readMessage, requestHeaders, requestText } from "./passthrough.ts";

const route = {
  model: {},
  route: { upstreamModel: "claude-opus-4-6", provider: { id: "anthropic", deviations: {} } },
} as TargetRoute;

const sent = (text: string): ReturnType<typeof requestText> =>
  requestText(
    { text, body: JSON.parse(text) as Record<string, unknown> } as OriginalRequest,
    route,
  );

describe("the passthrough body", () => {
  test("is the client's text with the upstream model", () => {
    const text =
      '{ "model" : "anthropic/claude-opus-4.7","max_tokens":1e3, "x_foo":{"b":[1,{"c":"\\u00e9"}]},\n' +
      '"messages":[{"role":"user","content":"Hi"}] }';
    const { parts, ...told } = sent(text);
    expect(told).toEqual({
      text: text.replace("anthropic/claude-opus-4.7", "claude-opus-4-6"),
      losses: [],
    });
    expect(parts.join("")).toBe(told.text);
  });

  test("is limited to the route's maximum, and lists lowered fields as losses", () => {
    const allowed = { ...route, route: { ...route.route, maxCompletionTokens: 8_192 } };
    const thinking = { type: "enabled", budget_tokens: 10_000 };
    const of = (fields: object): [unknown, unknown] => {
      const text = JSON.stringify({ model: "m", messages: [], ...fields });
      const { text: told, losses } = requestText(
        { text, body: JSON.parse(text) as Record<string, unknown> } as OriginalRequest,
        allowed,
      );
      return [JSON.parse(told), losses];
    };
    const losses = [
      { field: "max_tokens", reason: "cut to the 8192 that the provider allows for this model" },
    ];
    const model = "claude-opus-4-6";
    expect(of({ max_tokens: 8_192 })).toEqual([{ model, messages: [], max_tokens: 8_192 }, []]);
    expect(of({ max_tokens: 8_193 })).toEqual([{ model, messages: [], max_tokens: 8_192 }, losses]);
    expect(of({ max_tokens: 64_000, thinking })).toEqual([
      {
        model,
        messages: [],
        max_tokens: 8_192,
        thinking: { type: "enabled", budget_tokens: 6_553 },
      },
      losses,
    ]);
  });

  test("omits the gateway's own fields", () => {
    const text = JSON.stringify({
      model: "m",
      models: ["n"],
      provider: { sort: "price" },
      session_id: "s",
      trace: {},
      require_params: [],
      min_context: 1,
      messages: [],
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [] },
    });
    expect(JSON.parse(sent(text).text)).toEqual({
      model: "claude-opus-4-6",
      messages: [],
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [] },
    });
  });

  describe("has instructions within the conversation", () => {
    const said = (role: string, content: unknown): object => ({ role, content });
    const definition = { name: "late", input_schema: { type: "object", properties: {} } };
    const addition = { type: "tool_addition", tool: { type: "tool_definition", definition } };
    const marked = { type: "text", text: "Now rhyme.", cache_control: { type: "ephemeral" } };
    const messages = [
      said("user", "Hi"),
      said("system", [marked, addition]),
      said("assistant", "Hello."),
      said("user", "Go"),
      said("system", "Be brief."),
      { role: "system", content: [], output_config: { effort: "low" } },
    ];
    const of = (upstreamModel: string, deviations = {}): ReturnType<typeof requestText> => {
      const text = JSON.stringify({ model: "m", tools: [{ name: "a" }], messages });
      return requestText(
        { text, body: JSON.parse(text) as Record<string, unknown> } as OriginalRequest,
        { ...route, route: { upstreamModel, provider: { id: "anthropic", deviations } } },
      );
    };

    test.each(["claude-opus-4-8", "claude-sonnet-5", "anthropic.claude-opus-5-v1:0", "glm-5"])(
      "as they were written for %s",
      (model) => {
        const { text, losses } = of(model);
        expect(JSON.parse(text)).toEqual({ model, tools: [{ name: "a" }], messages });
        expect(losses).toEqual([]);
      },
    );

    test.each<[model: string, deviations: object]>([
      ["claude-opus-4-7", {}],
      ["claude-haiku-4-5-20251001", {}],
      ["deepseek-v4-pro", { systemOnlyFirst: true }],
    ])("as the user's text for %s", (model, deviations) => {
      const { text, losses } = of(model, deviations);
      const reminder = (words: string, more = {}): object =>
        said("user", [
          { type: "text", text: `<system-reminder>\n${words}\n</system-reminder>`, ...more },
        ]);
      expect(JSON.parse(text)).toEqual({
        model,
        tools: [{ name: "a" }, definition],
        messages: [
          messages[0],
          reminder("Now rhyme.", { cache_control: { type: "ephemeral" } }),
          messages[2],
          messages[3],
          reminder("Be brief."),
        ],
      });
      expect(losses.map(({ field }) => field)).toEqual(
        [1, 4, 5].map((at) => `messages[${at}].role`),
      );
    });
  });

  describe("omits thinking without a signature", () => {
    const thought = { type: "thinking", thinking: "t", signature: "" };
    const said = { type: "text", text: "a" };
    const use = { type: "tool_use", id: "c", name: "f", input: {} };
    const result = {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c", content: "1" }],
    };
    const user = { role: "user", content: "Hi" };
    const of = (messages: unknown[], more: object = {}): [unknown, string[]] => {
      const { text, losses } = sent(JSON.stringify({ model: "m", messages, ...more }));
      return [JSON.parse(text), losses.map(({ field }) => field)];
    };

    test.each<[block: object]>([
      [thought],
      [{ type: "thinking", thinking: "t" }],
      [{ ...thought, signature: null }],
      [{ type: "redacted_thinking", data: "" }],
    ])("%j", (block) => {
      const [body, losses] = of([user, { role: "assistant", content: [block, said] }, user]);
      expect(body).toEqual({
        model: "claude-opus-4-6",
        messages: [user, { role: "assistant", content: [said] }, user],
      });
      expect(losses).toEqual(["messages[1].content[0]"]);
    });

    test("and a turn with nothing else", () => {
      expect(of([user, { role: "assistant", content: [thought] }, user])[0]).toMatchObject({
        messages: [user, user],
      });
    });

    test("and a thinking budget if open tool calls lose their thinking", () => {
      const thinking = { type: "enabled", budget_tokens: 1_024 };
      const called = (...blocks: object[]): object => ({
        role: "assistant",
        content: [...blocks, use],
      });
      expect(of([user, called(thought), result], { thinking })).toEqual([
        { model: "claude-opus-4-6", messages: [user, called(), result] },
        ["messages[1].content[0]", "thinking"],
      ]);
      // Nothing is left to clear then, and Anthropic answers 400 to the wish.
      const clearing = { context_management: { edits: [{ type: "clear_thinking_20251015" }] } };
      expect(of([user, called(thought), result], { thinking, ...clearing })[0]).toEqual({
        model: "claude-opus-4-6",
        messages: [user, called(), result],
      });
      expect(of([user, called(), result], { thinking, ...clearing })[0]).toMatchObject(clearing);
      // A turn that is over needs none, and neither does a model that thinks as it sees fit.
      expect(of([user, called(thought), result, user], { thinking })[0]).toMatchObject({
        thinking,
      });
      const adaptive = { thinking: { type: "adaptive" } };
      expect(of([user, called(thought), result], adaptive)[0]).toMatchObject(adaptive);
    });

    test("except for a server that requires it", () => {
      const text = JSON.stringify({
        model: "m",
        messages: [user, { role: "assistant", content: [thought, said] }],
      });
      const provider = {
        ...route.route.provider,
        deviations: { reasoningReplay: "content" as const },
      };
      const own = { ...route, route: { ...route.route, provider } };
      const request = {
        text,
        body: JSON.parse(text) as Record<string, unknown>,
      } as OriginalRequest;
      expect(requestText(request, own).text).toBe(text.replace('"m"', '"claude-opus-4-6"'));
    });
  });

  test("restores the provider's own signatures and omits those of others", () => {
    const thinking = (signature: string): object => ({
      type: "thinking",
      thinking: "t",
      signature,
    });
    const content = [
      thinking("gw1:anthropic:own"),
      thinking("gw1:google:theirs"),
      thinking("plain"),
      { type: "redacted_thinking", data: "gw1:openai:theirs" },
      { type: "text", text: "a" },
    ];
    const { text, losses } = sent(
      JSON.stringify({
        model: "m",
        messages: [
          { role: "user", content: "Hi" },
          { role: "assistant", content },
        ],
      }),
    );
    expect(JSON.parse(text)).toEqual({
      model: "claude-opus-4-6",
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [thinking("own"), thinking("plain"), { type: "text", text: "a" }],
        },
      ],
    });
    expect(losses.map((loss) => loss.field)).toEqual([
      "messages[1].content[1]",
      "messages[1].content[3]",
    ]);
  });
});

describe("the passthrough headers", () => {
  test("add a version if the client sends none", () => {
    expect(requestHeaders({})).toEqual({ "anthropic-version": "2023-06-01" });
  });

  test("are the client's own", () => {
    const headers = {
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "a-2025-01-01,unknown-2027-01-01",
    };
    expect(requestHeaders({ ...headers, "x-other": "y" })).toEqual(headers);
  });
});

const metered = { usage: { inputTokens: 3, outputTokens: 2 }, estimated: false, clamped: false };
const shown: ShownAnswer = {
  id: "msg_gw",
  model: "acme/claude",
  metered,
  chargedNano: 5_000n,
  fallback: undefined,
  metadataText: () => "{}",
};
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Hi" }],
  stop_reason: "end_turn",
};

const read = (body: Record<string, unknown>): ReturnType<typeof readMessage> =>
  readMessage(JSON.stringify(body), body);

describe("a whole message", () => {
  test("is read for its settlement", () => {
    expect(read({ ...message, usage: { input_tokens: 3, output_tokens: 2 } })).toMatchObject({
      upstreamId: "msg_1",
      finishReason: "end_turn",
      metered,
      outputCharacters: 2,
      hasContent: true,
      spentOnReasoning: false,
    });
  });

  test("is forwarded unchanged except for the gateway's id, model and charge", () => {
    const text =
      '{"type":"message","role":"assistant","id":"msg_1", "x_foo" : [1e2],"model":"m",' +
      '"content":[{"type":"text","text":"\\u0041"}],' +
      '"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"x":{}}}';
    expect(readMessage(text, JSON.parse(text) as object)?.render(shown)).toBe(
      '{"type":"message","role":"assistant","id":"msg_gw", "x_foo" : [1e2],"model":"acme/claude",' +
        '"content":[{"type":"text","text":"\\u0041"}],' +
        '"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"x":{},"cost":0.000005}}',
    );
  });

  test("has the gateway's count if the provider's is impossible, and reports a fallback", () => {
    const fallback = { requestedModel: "acme/large", reason: "timeout", attempts: [] };
    const answer = read({ ...message, usage: { input_tokens: -1, output_tokens: 2 } })?.render({
      ...shown,
      metered: { ...metered, clamped: true },
      fallback,
    });
    expect(JSON.parse(answer ?? "")).toMatchObject({
      usage: { input_tokens: 3, output_tokens: 2, cost: 0.000005 },
      requested_model: "acme/large",
      fallback: { used: true },
    });
  });

  const contents: [what: string, body: object, content: boolean, spent: boolean][] = [
    ["no content", { content: [] }, false, false],
    ["no content, refused", { content: [], stop_reason: "refusal" }, true, false],
    [
      "only thinking, cut",
      { content: [{ type: "thinking", thinking: "t" }], stop_reason: "max_tokens" },
      true,
      true,
    ],
    [
      "thinking only in the usage, cut",
      {
        content: [],
        stop_reason: "max_tokens",
        usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 9 } },
      },
      true,
      true,
    ],
    ["only thinking, ended", { content: [{ type: "thinking", thinking: "t" }] }, true, false],
    [
      "a call",
      { content: [{ type: "tool_use", id: "a", name: "f", input: {} }], stop_reason: "tool_use" },
      true,
      false,
    ],
    [
      "a web search in progress",
      {
        content: [{ type: "server_tool_use", id: "a", name: "f", input: {} }],
        stop_reason: "pause_turn",
      },
      true,
      false,
    ],
  ];
  test.each(contents)("with %s", (_what, body, hasContent, spentOnReasoning) => {
    expect(read({ ...message, ...body })).toMatchObject({ hasContent, spentOnReasoning });
  });

  test.each<[reason: unknown, type: string, seen: string]>([
    ["end_turn", "tool_use", "tool_use"],
    ["tool_use", "text", "end_turn"],
    [null, "tool_use", "tool_use"],
    [undefined, "text", "end_turn"],
    ["pause_turn", "tool_use", "pause_turn"],
    ["weariness", "text", "weariness"],
  ])("with stop_reason %p and a block of %s gets %s", (reason, type, seen) => {
    const content = [{ type, text: "Hi", id: "a", name: "f", input: {} }];
    const answer = read({ ...message, content, stop_reason: reason });
    expect(answer?.finishReason).toBe(seen);
    expect(JSON.parse(answer?.render(shown) ?? "")).toMatchObject({ stop_reason: seen });
  });

  test("gets a missing type and role", () => {
    const { type: _type, role: _role, ...bare } = message;
    const answer = JSON.parse(read(bare)?.render(shown) ?? "") as object;
    expect(answer).toMatchObject({ type: "message", role: "assistant" });
  });

  test("is refused without content", () => {
    expect(read({ type: "error", error: {} })).toBeUndefined();
  });
});
