import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  const pricing = { prompt: "0.50", completion: "1.50", search: "0.01" };
  gateway = await startGateway({
    providers: [acme(upstream.baseUrl, { models: [{ id: "acme/large", pricing }] })],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const message = (fields: Record<string, unknown>): Record<string, unknown> => ({
  messages: [{ role: "user", content: "Hello" }, fields],
});

/** Fields that are wrong, and the name that the error gives them. */
const wrong: readonly [fields: Record<string, unknown>, param: string][] = [
  [{ model: undefined }, "model"],
  [{ model: null }, "model"],
  [{ model: "" }, "model"],
  [{ model: 7 }, "model"],
  [{ model: ["acme/large"] }, "model"],
  [{ models: "acme/large" }, "models"],
  [{ models: ["acme/large", 3] }, "models[1]"],
  [{ models: [""] }, "models[0]"],
  [{ messages: undefined }, "messages"],
  [{ messages: null }, "messages"],
  [{ messages: [] }, "messages"],
  [{ messages: "Hello" }, "messages"],
  [{ messages: ["Hello"] }, "messages[0]"],
  [message({ role: "robot", content: "x" }), "messages[1].role"],
  [message({ content: "x" }), "messages[1].role"],
  [message({ role: "user" }), "messages[1].content"],
  [message({ role: "user", content: 5 }), "messages[1].content"],
  [message({ role: "tool", content: { text: "x" } }), "messages[1].content"],
  [{ temperature: "hot" }, "temperature"],
  [{ temperature: 2.1 }, "temperature"],
  [{ temperature: -0.1 }, "temperature"],
  [{ top_p: 1.01 }, "top_p"],
  [{ top_p: "all" }, "top_p"],
  [{ max_tokens: "many" }, "max_tokens"],
  [{ max_tokens: 1.5 }, "max_tokens"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ max_completion_tokens: -1 }, "max_completion_tokens"],
  [{ frequency_penalty: 3 }, "frequency_penalty"],
  [{ presence_penalty: -3 }, "presence_penalty"],
  [{ stream: "yes" }, "stream"],
  [{ stream_options: true }, "stream_options"],
  [{ stop: 5 }, "stop"],
  [{ stop: ["a", 5] }, "stop[1]"],
  [{ tools: {} }, "tools"],
  [{ tools: ["get_weather"] }, "tools[0]"],
  [{ tools: [{ name: "x" }] }, "tools[0].type"],
  [{ tools: [{ type: "function" }] }, "tools[0].function"],
  [{ tools: [{ type: "function", name: "flat" }] }, "tools[0].function"],
  [{ tools: [{ type: "custom", custom: {} }] }, "tools[0].custom.name"],
  [{ tools: [{ type: "function", function: { name: "" } }] }, "tools[0].function.name"],
  [
    { tools: [{ type: "function", function: { name: "f", parameters: "x" } }] },
    "tools[0].function.parameters",
  ],
  [
    { tools: [{ type: "function", function: { name: "f", description: 5 } }] },
    "tools[0].function.description",
  ],
  [{ tool_choice: 3 }, "tool_choice"],
  [{ tool_choice: "sometimes" }, "tool_choice"],
  [{ tool_choice: {} }, "tool_choice.type"],
  [{ stream_options: { include_usage: "yes" } }, "stream_options.include_usage"],
  [{ reasoning: "high" }, "reasoning"],
  [{ reasoning: { effort: 5 } }, "reasoning.effort"],
  [{ reasoning: { enabled: "no" } }, "reasoning.enabled"],
  [{ reasoning: { max_tokens: "many" } }, "reasoning.max_tokens"],
  [{ logit_bias: "x" }, "logit_bias"],
  [{ top_k: "5" }, "top_k"],
  [{ repetition_penalty: {} }, "repetition_penalty"],
  [{ parallel_tool_calls: "no" }, "parallel_tool_calls"],
  [{ response_format: "json_object" }, "response_format"],
  [{ seed: "lucky" }, "seed"],
  [{ user: 9 }, "user"],
  [{ reasoning_effort: 3 }, "reasoning_effort"],
  [{ n: 0 }, "n"],
  [{ logprobs: 1 }, "logprobs"],
  [{ top_logprobs: 21 }, "top_logprobs"],
  [{ session_id: 5 }, "session_id"],
  [{ session_id: "s".repeat(257) }, "session_id"],
  [{ session_id: "\u{1F600}".repeat(257) }, "session_id"],
  [{ provider: "acme" }, "provider"],
  [{ provider: { order: "acme" } }, "provider.order"],
  [{ provider: { order: [""] } }, "provider.order[0]"],
  [{ provider: { only: 3 } }, "provider.only"],
  [{ provider: { ignore: {} } }, "provider.ignore"],
  [{ provider: { allow_fallbacks: "no" } }, "provider.allow_fallbacks"],
  [{ provider: { require_parameters: 1 } }, "provider.require_parameters"],
  [{ provider: { require_params: "tools" } }, "provider.require_params"],
  [{ provider: { min_context: "1m" } }, "provider.min_context"],
  [{ provider: { data_collection: "maybe" } }, "provider.data_collection"],
  [{ provider: { zdr: "yes" } }, "provider.zdr"],
  [{ provider: { enforce_distillable_text: 1 } }, "provider.enforce_distillable_text"],
  [{ provider: { quantizations: "fp8" } }, "provider.quantizations"],
  [{ provider: { sort: "random" } }, "provider.sort"],
  [{ provider: { sort: { by: "exacto" } } }, "provider.sort.by"],
  [{ provider: { sort: { by: "price", partition: "all" } } }, "provider.sort.partition"],
  [{ provider: { preferred_min_throughput: "fast" } }, "provider.preferred_min_throughput"],
  [{ provider: { preferred_max_latency: { p42: 1 } } }, "provider.preferred_max_latency.p42"],
  [{ provider: { preferred_max_latency: { p90: "1" } } }, "provider.preferred_max_latency.p90"],
  [
    { provider: { preferred_min_throughput: { p75: -1 } } },
    "provider.preferred_min_throughput.p75",
  ],
  [{ provider: { sort: { by: "vibes" } } }, "provider.sort.by"],
  [{ provider: { max_price: 3 } }, "provider.max_price"],
  [{ provider: { max_price: { prompt: "cheap" } } }, "provider.max_price.prompt"],
  [{ provider: { max_price: { completion: "-1" } } }, "provider.max_price.completion"],
  [{ require_params: "tools" }, "require_params"],
  [{ min_context: "1m" }, "min_context"],
  [{ trace: "abc" }, "trace"],
];

test.each(wrong)("%j returns 400 with param %s", async (fields, param) => {
  const sentBefore = upstream.requests.length;
  const error = await errorOf(await gateway.post("/chat/completions", chatRequest(fields)));
  expect(error).toMatchObject({
    status: 400,
    code: "bad_request",
    type: "invalid_request_error",
    param,
  });
  expect(error.message).toStartWith(param);
  expect(error.headers.get("x-should-retry")).toBe("false");
  expect(upstream.requests.length).toBe(sentBefore);
});

/** Fields at the edge of what is right. */
const right: readonly Record<string, unknown>[] = [
  { temperature: 0 },
  { temperature: 2 },
  { temperature: null },
  { top_p: 0 },
  { top_p: 1 },
  { max_tokens: 1 },
  { stop: null },
  { stop: "x" },
  { stop: ["a", "b", "c", "d"] },
  { tools: null },
  { tool_choice: "auto" },
  { provider: null },
  { provider: {} },
  { models: null },
  { models: [] },
  { session_id: "s".repeat(256) },
  { session_id: "\u{1F600}".repeat(256) },
  {
    tools: [{ type: "function", function: { name: "f" } }, { type: "web_search" }],
    tool_choice: { type: "web_search" },
  },
  { reasoning: { effort: null, max_tokens: 100 }, top_k: 0, logit_bias: {} },
  { seed: -1 },
  { user: "" },
  message({ role: "developer", content: "x" }),
  message({ role: "assistant", content: null }),
  message({ role: "assistant", tool_calls: [] }),
  message({ role: "tool", tool_call_id: "c", content: "x" }),
  message({ role: "user", content: [{ type: "text", text: "x" }] }),
  { provider: { sort: { by: "price", partition: "none" } } },
  { provider: { preferred_max_latency: { p50: 1, p99: 3 } } },
  { provider: { max_price: { prompt: 1, completion: "2" } } },
  {
    trace: {
      trace_id: "t",
      trace_name: "n",
      span_name: "s",
      generation_name: "g",
      parent_span_id: "p",
    },
  },
  { something_new: { deep: [1] } },
];

test.each(right.map((fields) => [fields]))("%j is accepted", async (fields) => {
  const response = await gateway.post("/chat/completions", chatRequest(fields));
  expect(response.status).toBe(200);
  await response.text();
});

test("x-session-id has the same length limit as session_id, and session_id takes precedence", async () => {
  const send = (fields: Record<string, unknown>): Promise<Response> =>
    gateway.post("/chat/completions", chatRequest(fields), {
      headers: { "x-session-id": "s".repeat(257) },
    });
  expect(await errorOf(await send({}))).toMatchObject({
    status: 400,
    code: "bad_request",
    param: "x-session-id",
  });
  expect((await send({ session_id: "mine" })).status).toBe(200);
});
