import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { answer, sse, stream } from "../../support/upstream/steps.ts";

/** A model whose prices are known at every level that the bodies below ask for. */
const flexible = {
  id: "acme/large",
  upstream_model: "large-v2",
  context_length: 131072,
  pricing: { prompt: "0.50", completion: "1.50", service_tier: { flex: "0.5" } },
};

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({ providers: [acme(upstream.baseUrl, { models: [flexible] })] });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/** The body that the upstream gets for a body that the caller sends. */
async function forwarded(body: string): Promise<string> {
  const response = await gateway.post("/chat/completions", body);
  expect(response.status).toBe(200);
  await response.text();
  return upstream.requests.at(-1)?.body ?? "";
}

const messages =
  '"messages": [ {"role":"user","content":"Grüße \\ud83d\\ude00 \\"😀\\" \\/ \\t"} ]';

describe("requests are forwarded byte for byte, except for the model", () => {
  const members: readonly string[][] = [
    ['"x_number":1.0', '"x_exponent":1.50e+2', '"x_big":12345678901234567890', '"x_negative":-0'],
    ['"x_tiny":0.1000000000000000055511151231257827'],
    ['"x_unknown":{"deep":[{"a":1.0},[],{}, null,true ],"b":"\\u00e9"}', '"x_empty":""'],
    ['"temperature":1.0', '"max_tokens":10', '"seed":-42', '"top_p":0.90'],
    ['"logit_bias":{"50256":-100}', '"n":2', '"logprobs":true', '"top_logprobs":5'],
    ['"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}'],
    ['"tools":[{"type":"function","function":{"name":"f","parameters":{"minimum":1.0}}}]'],
    ['"tool_choice":"auto"', '"parallel_tool_calls":false', '"metadata":{"k":"v"}'],
    ['"store":false', '"service_tier":"flex"', '"prediction":{"type":"content","content":"x"}'],
    ['"__proto__":{"polluted":1}', '"constructor":1', '"toString":"x"'],
    ['"stream":false', '"stream_options":null', '"stop":["\\n","END"]'],
  ];

  test.each([
    `{"model":"acme/large",${messages}}`,
    `  {\n\t"model" : "acme/large" ,\r\n ${messages} }\n`,
    `{${messages},"model":"acme/large"}`,
    ...members.map((more) => `{"model":"acme/large",${messages},${more.join(",")}}`),
  ])("%s", async (body) => {
    expect(await forwarded(body)).toBe(body.replace('"acme/large"', '"large-v2"'));
  });

  test("the id of the caller's user is the only other change", async () => {
    const body = `{ "user" : "u" ,${messages}, "x":1.0,"model":"acme/large"}`;
    const [before = "", after = ""] = body.replace('"acme/large"', '"large-v2"').split('"u"');
    const got = await forwarded(body);
    expect([got.startsWith(before), got.endsWith(after)]).toEqual([true, true]);
    expect(got.slice(before.length, got.length - after.length)).toMatch(/^"[\w-]{43}"$/);
  });

  test.each([
    [
      '"stream_options":{ "include_usage" : true, "x":1.0}',
      '"stream_options":{ "include_usage" : true, "x":1.0}',
    ],
    ['"stream_options":{"include_usage":false}', '"stream_options":{"include_usage":true}'],
  ])("streamed, with %s", async (sent, got) => {
    const body = (options: string): string =>
      `{"model":"acme/large",${messages},"stream":true,${options},"x_big":12345678901234567890}`;
    expect(await forwarded(body(sent))).toBe(body(got).replace('"acme/large"', '"large-v2"'));
  });

  test("streamed without stream_options: they are appended", async () => {
    const body = `{"model":"acme/large",${messages},"stream":true}`;
    expect(await forwarded(body)).toBe(
      `{"model":"large-v2",${messages},"stream":true,"stream_options":{"include_usage":true}}`,
    );
  });
});

describe("members that are meant for the gateway are not forwarded", () => {
  const gatewayOnly = [
    '"models":["acme/large"]',
    '"provider":{"order":["acme"]}',
    '"session_id":"s"',
    '"trace":{"trace_id":"t"}',
    '"require_params":[]',
    '"min_context":1',
  ];

  test.each(gatewayOnly)("%s, at any position", async (member) => {
    const clean = `{"model":"large-v2",${messages},"x":1.0}`;
    expect(await forwarded(`{"model":"acme/large",${messages},${member},"x":1.0}`)).toBe(clean);
    expect(await forwarded(`{${member},"model":"acme/large",${messages},"x":1.0}`)).toBe(clean);
    expect(await forwarded(`{"model":"acme/large",${messages},"x":1.0,${member}}`)).toBe(clean);
    expect(await forwarded(`{${member},"model":"acme/large",${messages},"x":1.0,${member}}`)).toBe(
      clean,
    );
  });

  test("a member name with escapes is recognised", async () => {
    expect(await forwarded(`{"mod\\u0065l":"acme/large",${messages},"provid\\u0065r":{}}`)).toBe(
      `{"mod\\u0065l":"large-v2",${messages}}`,
    );
  });

  test("a model member that occurs twice is replaced twice, and stream_options are still appended", async () => {
    const body = await forwarded(
      `{"model":"acme/other","model":"acme/large",${messages},"stream":true}`,
    );
    expect(body).toBe(
      `{"model":"large-v2","model":"large-v2",${messages},"stream":true,` +
        '"stream_options":{"include_usage":true}}',
    );
  });

  test("neither the caller's key nor the caller's headers are forwarded", async () => {
    await forwarded(`{"model":"acme/large",${messages}}`);
    const headers = Object.fromEntries(upstream.requests.at(-1)?.headers ?? []);
    expect(headers["authorization"]).toBe("Bearer upstream-secret");
    expect(Object.keys(headers).sort()).toEqual([
      "accept-encoding",
      "authorization",
      "content-length",
      "content-type",
      "host",
      "user-agent",
    ]);
  });
});

describe("responses are relayed byte for byte, except for id, model, cost and required members", () => {
  const choices = [
    '"choices":[ {"index":0',
    '"message":{"role":"assistant","content":"\\u00e9 😀","x_big":12345678901234567890}',
    '"logprobs":{"content":[{"token":"a","logprob":-0.10}]},"finish_reason":"stop","x":1.0} ]',
  ].join(",");
  const usage = '{"prompt_tokens":11, "completion_tokens":7,"total_tokens":18,"x_detail":{"n":1.0}';

  test("whole", async () => {
    const members = (id: string, model: string): string =>
      `"id":"${id}","object":"chat.completion","created":1.7e9,"model":"${model}","x":1.50`;
    const sent = `{${members("up-1", "large-v2-0711")},${choices},"usage":${usage}}}`;
    upstream.enqueue(answer(sent, { headers: { "content-type": "application/json" } }));
    const response = await gateway.post("/chat/completions", {
      model: "acme/large",
      messages: [{ role: "user", content: "x" }],
    });
    const id = `chatcmpl-${response.headers.get("x-service-trace-id")}`;
    const shown = `${members(id, "acme/large")},${choices},"usage":${usage},"cost":0.000016},"system_fingerprint":null,"provider":"acme"`;
    expect(await response.text()).toBe(`{${shown}}`);
  });

  test("streamed", async () => {
    const members = (id: string, model: string): string =>
      `"id":"${id}","object":"chat.completion.chunk","created":1.7e9,"model":"${model}"`;
    const chunk = (rest: string): string => `{${members("up-1", "large-v2-0711")},${rest}}`;
    const content = '"content":"\\u00e9 😀","x_big":12345678901234567890';
    const delta = `"choices":[{"index":0,"delta":{${content}},"finish_reason":null}],"x":1.0`;
    const finish = '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]';
    upstream.enqueue(
      stream([
        ...[delta, finish].map((rest) => sse(chunk(rest))),
        sse(chunk(`"choices":[],"usage":${usage}}`)),
        sse("[DONE]"),
      ]),
    );
    const response = await gateway.post("/chat/completions", {
      model: "acme/large",
      messages: [{ role: "user", content: "x" }],
      stream: true,
    });
    const id = `chatcmpl-${response.headers.get("x-service-trace-id")}`;
    const shown = (rest: string): string => `data: {${members(id, "acme/large")},${rest}`;
    const lines = (await response.text()).split("\n\n");
    const withRole = delta.replace('"delta":{', '"delta":{"role":"assistant",');
    expect(lines.slice(0, 2)).toEqual([`${shown(withRole)}}`, `${shown(finish)}}`]);
    expect(lines[2]).toStartWith(shown(`"choices":[],"usage":${usage},"cost":0.000016}`));
    expect(lines.slice(3)).toEqual(["data: [DONE]", ""]);
  });
});
