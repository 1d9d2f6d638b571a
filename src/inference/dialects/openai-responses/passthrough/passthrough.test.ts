import { describe, expect, test } from "bun:test";
import { responsesRequest, responsesRoute } from "../../../../../test/support/responses-request.ts";
import type { OriginalRequest, TargetRoute } from "../../shared/exchange.ts";
import { requestText } from "./passthrough.ts";

const sent = (
  body: Record<string, unknown>,
  route: TargetRoute["route"] = responsesRoute().route,
): Record<string, unknown> =>
  JSON.parse(requestText(responsesRequest(body), { ...responsesRoute(), route }).text) as Record<
    string,
    unknown
  >;

describe("the passthrough body", () => {
  test("keeps every unchanged character", () => {
    const text =
      '{ "model":"openai/large",\t"input": [ {"role":"user","content":"H\\u00e9"} ], "x_foo":{"deep":[1.0]},"store":true }';
    const request: OriginalRequest = {
      ...responsesRequest({}),
      text,
      body: JSON.parse(text) as Record<string, unknown>,
    };
    expect(requestText(request, responsesRoute()).text).toBe(
      '{ "model":"large-v2",\t"input": [ {"role":"user","content":"H\\u00e9"} ], "x_foo":{"deep":[1.0]},"store":false }',
    );
  });

  test("omits the gateway's fields, and stores nothing", () => {
    expect(
      sent({
        model: "m",
        input: "Hi",
        models: ["a"],
        provider: { order: ["acme"] },
        session_id: "s",
        trace: {},
        require_params: [],
        min_context: 1,
        background: true,
        previous_response_id: "resp_1",
        stream: true,
      }),
    ).toEqual({ model: "large-v2", input: "Hi", stream: true, store: false });
  });

  test("keeps a window of background execution from the provider, and names it", () => {
    const ask = (options: object) =>
      requestText(
        responsesRequest({ model: "m", input: "Hi", background_options: options }),
        responsesRoute(),
      );
    for (const [options, fields] of [
      [{ completion_window: "2h" }, ["background_options"]],
      [{ continuation_id: "job" }, ["background_options"]],
      [{ completion_window: "soonest" }, []],
      [{}, []],
    ] as const) {
      const { text, losses } = ask(options);
      expect(text).not.toContain("background_options");
      expect(losses.map(({ field }) => field)).toEqual([...fields]);
    }
  });

  test("converts the gateway's reasoning fields to an effort", () => {
    expect(
      sent({ model: "m", input: "", reasoning: { enabled: false, max_tokens: 5 } }).reasoning,
    ).toEqual({ effort: "none" });
    expect(
      sent({ model: "m", input: "", reasoning: { enabled: false, effort: "high" } }).reasoning,
    ).toEqual({ effort: "none" });
    expect(
      sent({ model: "m", input: "", reasoning: { max_tokens: 2_000, summary: "auto" } }).reasoning,
    ).toEqual({ effort: "medium", summary: "auto" });
    expect(
      sent({ model: "m", input: "", reasoning: { enabled: true, max_tokens: 2_000 } }).reasoning,
    ).toEqual({});
    expect(
      sent({ model: "m", input: "", reasoning: { effort: "high", summary: "auto", exclude: true } })
        .reasoning,
    ).toEqual({ effort: "high" });
    expect(
      sent({ model: "m", input: "", reasoning: { effort: "low", context: "auto" } }).reasoning,
    ).toEqual({ effort: "low", context: "auto" });
  });

  test("limits the effort, and asks a reasoning model for encrypted reasoning", () => {
    const route = responsesRoute({ reasoning: { levels: ["low", "medium"] } }).route;
    const body = sent(
      {
        model: "m",
        input: "",
        reasoning: { effort: "xhigh" },
        include: ["web_search_call.results"],
      },
      route,
    );
    expect(body.reasoning).toEqual({ effort: "medium" });
    expect(body.include).toEqual(["web_search_call.results", "reasoning.encrypted_content"]);
    expect(sent({ model: "m", input: "" })).not.toHaveProperty("include");
  });

  const ownThought = { type: "reasoning", summary: [], encrypted_content: "gw1:acme:own==" };
  const otherThought = { ...ownThought, encrypted_content: "gw1:other:foreign==" };

  test.each<[name: string, body: Record<string, unknown>, asks: boolean]>([
    ["with an effort", { reasoning: { effort: "low" } }, true],
    ["with a summary", { reasoning: { summary: "auto" } }, true],
    ["with a budget", { reasoning: { max_tokens: 2_000 } }, true],
    ["with its own earlier reasoning", { input: [ownThought] }, true],
    ["with another provider's reasoning", { input: [otherThought] }, false],
    ["with reasoning off", { reasoning: { effort: "none", summary: "auto" } }, false],
    ["with reasoning switched off", { reasoning: { enabled: false, effort: "low" } }, false],
  ])("asks an undeclared model for encrypted reasoning %s", (_, body, asks) => {
    expect(sent({ model: "m", input: "", ...body }).include).toEqual(
      asks ? ["reasoning.encrypted_content"] : undefined,
    );
  });

  test("never asks a model that has none for encrypted reasoning", () => {
    const route = {
      ...responsesRoute({ reasoning: { levels: ["low"] } }).route,
      refuses: { always: ["reasoning_effort"], whileReasoning: [] },
    } as unknown as TargetRoute["route"];
    expect(sent({ model: "m", input: "" }, route)).not.toHaveProperty("include");
  });
});

describe("reasoning of earlier turns", () => {
  const input = [
    { role: "user", content: "Hi" },
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gw1:acme:own==" },
    { type: "reasoning", id: "rs_2", summary: [], encrypted_content: "gw1:other:foreign==" },
    { type: "reasoning", id: "rs_3", summary: [], encrypted_content: "unmarked==" },
    { type: "reasoning", id: "rs_4", summary: [] },
    { type: "reasoning", id: "rs_5", summary: [{ type: "summary_text", text: "hm" }] },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
  ];

  test("is returned only to its provider, never as a bare id", () => {
    const { text, losses } = requestText(responsesRequest({ model: "m", input }), responsesRoute());
    expect((JSON.parse(text) as { input: unknown }).input).toEqual([
      input[0],
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "own==" },
      input[3],
      { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
      input[6],
    ]);
    expect(losses.map((loss) => loss.field)).toEqual(["input[2]", "input[4]"]);
  });

  test("that is left out takes the ids of what the model said and called after it", () => {
    const foreign = { type: "reasoning", id: "rs_2", encrypted_content: "gw1:other:foreign==" };
    const own = { type: "reasoning", id: "rs_1", encrypted_content: "own==" };
    const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };
    const custom = { type: "custom_tool_call", id: "ctc_1", call_id: "d", name: "g", input: "" };
    const said = { type: "message", id: "msg_1", role: "assistant", content: [] };
    const result = { type: "function_call_output", id: "fco_1", call_id: "c", output: "1" };
    const search = { type: "web_search_call", id: "ws_1", status: "completed" };
    const asked = { type: "message", id: "msg_2", role: "user", content: "Go on" };
    const bare = ({ id: _id, ...item }: { id: string }) => item;
    const turn = [call, custom, result, search, said];
    const input = [call, foreign, ...turn, asked, call, foreign, own, call];
    expect(sent({ model: "m", input }).input).toEqual([
      call,
      ...[bare(call), bare(custom), result, bare(search), bare(said)],
      asked,
      call,
      own,
      call,
    ]);
  });

  test("is refused as an unresolved reference", () => {
    const request = responsesRequest({
      model: "m",
      input: [{ type: "item_reference", id: "msg_1" }],
    });
    expect(() => requestText(request, responsesRoute())).toThrow(
      expect.objectContaining({ code: "bad_request", param: "input[0]" }),
    );
  });
});
