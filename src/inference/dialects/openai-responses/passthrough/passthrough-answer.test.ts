import { describe, expect, test } from "bun:test";
import { responsesRequest } from "../../../../../test/support/responses-request.ts";
import type { ShownAnswer, WholeAnswer } from "../../shared/exchange.ts";
import { readResponse } from "./passthrough-answer.ts";

const usage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 8 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 29,
};
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Hi", annotations: [] }],
};
const thought = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "e==" };

function read(
  response: Record<string, unknown>,
  body: Record<string, unknown> = {},
): WholeAnswer | undefined {
  const text = JSON.stringify(response);
  return readResponse(text, response, {
    request: responsesRequest({ model: "m", input: "Hi", ...body }),
    providerId: "acme",
  });
}

const shown = (answer: WholeAnswer | undefined, more: Partial<ShownAnswer> = {}): ShownAnswer => ({
  id: "resp_own",
  model: "openai/large",
  metered: answer?.metered ?? {
    usage: {},
    estimated: true,
    clamped: false,
  },
  chargedNano: 1_500_000n,
  fallback: undefined,
  metadataText: () => '{"requestId":"r"}',
  ...more,
});

describe("a whole response", () => {
  const whole = {
    id: "resp_up",
    object: "response",
    status: "completed",
    model: "large-v2",
    store: false,
    x_foo: [1],
    output: [thought, message],
    usage,
  };

  test("has valid JSON arguments in each call", () => {
    const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", x_foo: 1 };
    const output = [message, { ...call, arguments: "" }, { ...call, arguments: '{"a": 1}' }];
    const metadata = { arguments: "" };
    const answer = read({ ...whole, output, metadata });
    expect(JSON.parse(answer?.render(shown(answer)) ?? "")).toMatchObject({
      output: [message, { ...call, arguments: "{}" }, { ...call, arguments: '{"a": 1}' }],
      metadata,
    });
  });

  test("gets the client's id, model and storage, the charge, and marked signatures", () => {
    const answer = read(whole, { previous_response_id: "resp_before" });
    expect(answer).toMatchObject({
      upstreamId: "resp_up",
      finishReason: "stop",
      hasContent: true,
      outputCharacters: 3,
      spentOnReasoning: false,
    });
    expect(JSON.parse(answer?.render(shown(answer)) ?? "")).toEqual({
      ...whole,
      id: "resp_own",
      model: "openai/large",
      store: true,
      background: false,
      previous_response_id: "resp_before",
      output: [{ ...thought, encrypted_content: "gw1:acme:e==" }, message],
      output_text: "Hi",
      completed_at: 1_763_700_009,
      usage: { ...usage, cost: 0.0015, is_byok: false },
      service_metadata: { requestId: "r" },
    });
  });

  test("repeats what the request asked where the provider does not", () => {
    const search = { type: "function", name: "search" };
    const asked = {
      instructions: "Be brief.",
      metadata: { project: "7" },
      tools: [search, { type: "web_search" }],
      tool_choice: "required",
      max_output_tokens: 100,
      reasoning: { effort: "low" },
      temperature: 0.5,
    };
    const repeated = (answered: Record<string, unknown>): unknown => {
      const answer = read({ ...whole, ...answered }, asked);
      return JSON.parse(answer?.render(shown(answer)) ?? "");
    };
    const own = {
      ...asked,
      tools: [{ ...search, description: null, parameters: null, strict: null }, asked.tools[1]],
      reasoning: { effort: "low", summary: null },
    };
    expect(repeated({})).toMatchObject(own);
    expect(repeated({ instructions: null, metadata: {}, tools: [] })).toMatchObject(own);
    const told = { metadata: { project: "8" }, tool_choice: "auto", temperature: 1 };
    expect(repeated(told)).toMatchObject({ ...own, ...told });
  });

  test("has the gateway's usage if the provider's is impossible", () => {
    const answer = read({ ...whole, usage: { ...usage, output_tokens: -5 } });
    const rendered = JSON.parse(answer?.render(shown(answer)) ?? "") as {
      usage: { output_tokens: number; total_tokens: number };
    };
    expect(rendered.usage.output_tokens).toBeGreaterThanOrEqual(0);
    expect(rendered.usage.total_tokens).toBe(20 + rendered.usage.output_tokens);
  });

  test("with only hosted calls or thoughts has content", () => {
    expect(
      read({ status: "completed", output: [{ type: "web_search_call", id: "ws_1" }] })?.hasContent,
    ).toBe(true);
    expect(read({ status: "completed", output: [] })?.hasContent).toBe(false);
    expect(read({ status: "completed", output: [thought] })?.hasContent).toBe(true);
  });

  test("that was cut during reasoning spent its budget on reasoning", () => {
    const cut = {
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ ...thought }],
      usage,
    };
    expect(read(cut)).toMatchObject({
      spentOnReasoning: true,
      finishReason: "length",
      hasContent: true,
    });
    expect(read({ ...cut, output: [message] })?.spentOnReasoning).toBe(false);
  });

  test.each(["failed", "cancelled", "in_progress", "queued", undefined])(
    "with the status %p is refused",
    (status) => {
      expect(
        read({ status, output: [], error: { code: "server_error", message: "No." } }),
      ).toBeUndefined();
    },
  );
});
