import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Fields, VendorId, VendorRule } from "../../../support/strict-vendors/rule.ts";
import {
  ask,
  askClaude,
  chatCall,
  chatHistory,
  chatTool,
  claudeHistory,
  responsesTool,
  schemaOf,
} from "../../../support/strict-vendors/samples.ts";
import { nameOf, vendorRules } from "../../../support/strict-vendors/vendor-rules.ts";
import { clientsOwn, mended } from "./clients-own.ts";
import { startStrictScene, type StrictScene } from "./strict-scene.ts";
import { translated, unreached } from "./translated.ts";

let scene: StrictScene;
beforeAll(async () => {
  scene = await startStrictScene();
});
afterAll(() => scene.end());

const paths: Readonly<Record<string, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  responses: "/responses",
  messages: "/messages",
};

const isNative = ({ endpoint }: VendorRule): boolean => endpoint in paths;
const isClientsOwn = (rule: VendorRule): boolean =>
  clientsOwn.some((pattern) => pattern.test(nameOf(rule)));
const rows = (rules: readonly VendorRule[]) => rules.map((rule) => [nameOf(rule), rule] as const);

/** Sends the request that a rule refuses, in the vendor's own dialect, through the gateway. */
async function askNative({ vendor, endpoint, violates }: VendorRule): Promise<Response> {
  scene.upstream.forget();
  const model = scene.idOf(vendor, violates.model);
  return scene.ask(paths[endpoint] ?? "", { ...violates.body, model }, vendor);
}

describe("a client of the vendor's own dialect", () => {
  const isMended = (rule: VendorRule): boolean => mended.has(nameOf(rule));
  test.each(
    rows(vendorRules.filter((rule) => isNative(rule) && !isClientsOwn(rule) && !isMended(rule))),
  )("is not refused by %s", async (_, rule) => {
    const answer = await askNative(rule);
    expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
    expect(answer.status).toBe(200);
  });

  test.each(rows(vendorRules.filter(isMended)))(
    "is refused once by %s, and served without what it is about",
    async (name, rule) => {
      const answer = await askNative(rule);
      expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([name]);
      expect(scene.upstream.received).toHaveLength(2);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-service-translation-loss")).not.toBeNull();
    },
  );

  test.each(rows(vendorRules.filter((rule) => isNative(rule) && isClientsOwn(rule))))(
    "reads why its own request was refused by %s",
    async (_, rule) => {
      const answer = await askNative(rule);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      const { error } = (await answer.json()) as { error: { message: string } };
      expect(error.message).not.toBe("");
    },
  );
});

describe("a chat client before another dialect", () => {
  test.each(Object.entries(translated))("is not refused by %s", async (name, body) => {
    const rule = vendorRules.find((one) => nameOf(one) === name);
    if (rule === undefined) throw new Error(`there is no rule ${name}`);
    scene.upstream.forget();
    const model = scene.idOf(rule.vendor, rule.violates.model);
    const answer = await scene.ask("/chat/completions", { ...body, model }, rule.vendor);
    expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
    expect(answer.status).toBe(200);
    expect(scene.upstream.received.at(-1)?.endpoint).toBe(rule.endpoint);
  });
});

describe("what a vendor refuses of chat is fitted for", () => {
  const format = { type: "json_schema", name: "answer", schema: schemaOf({ type: "string" }) };
  const begun = {
    max_tokens: 900,
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "So" },
    ],
  };
  const closed = [...begun.messages, { role: "user", content: "Continue." }];
  const off = askClaude({ thinking: { type: "disabled" } });
  const high = { input: "Hi", temperature: 1.5 };

  test.each<
    [
      path: string,
      vendor: VendorId,
      model: string,
      asked: Fields,
      lost: string | null,
      sent: Fields,
    ]
  >([
    [
      "/responses",
      "groq",
      "openai/gpt-oss-120b",
      { input: "Hi", tools: [responsesTool()], text: { format } },
      "response_format",
      { messages: [{ role: "system" }, { role: "user", content: "Hi" }] },
    ],
    ["/messages", "mistral", "mistral-large-latest", begun, "messages[1]", { messages: closed }],
    ["/responses", "cohere", "command-a-03-2025", high, "temperature", { temperature: 1 }],
    ["/responses", "moonshotai", "kimi-k2-0905-preview", high, "temperature", { temperature: 1 }],
    [
      "/messages",
      "openrouter",
      "openai/gpt-5",
      askClaude({ max_tokens: 1 }),
      "max_tokens",
      { max_completion_tokens: 16 },
    ],
    ["/messages", "zai", "glm-5.1", off, null, { thinking: { type: "disabled" } }],
  ])("%s: %s with %s, asked %j", async (path, vendor, model, asked, lost, sent) => {
    scene.upstream.forget();
    const answer = await scene.ask(path, { ...asked, model: scene.idOf(vendor, model) }, vendor);
    expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
    expect([answer.status, answer.headers.get("x-service-translation-loss")]).toEqual([200, lost]);
    expect(scene.upstream.received[0]?.body).toMatchObject(sent);
  });
});

test("several answers with tools are refused where tools are taken on Responses alone", async () => {
  scene.upstream.forget();
  const body = ask({ tools: [chatTool()], n: 2 });
  const model = scene.idOf("openai", "gpt-6-astra");
  const answer = await scene.ask("/chat/completions", { ...body, model }, "openai");
  expect(scene.upstream.received).toEqual([]);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: "unsupported_content", param: "n" } });
});

test("several answers with tools are asked for without reasoning where it excludes them", async () => {
  scene.upstream.forget();
  const body = ask({ tools: [chatTool()], n: 2, reasoning_effort: "high" });
  const model = scene.idOf("openai", "gpt-5.5");
  const answer = await scene.ask("/chat/completions", { ...body, model }, "openai");
  expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
  expect(answer.status).toBe(200);
  expect(scene.upstream.received.at(-1)).toMatchObject({
    endpoint: "chat",
    body: { n: 2, reasoning_effort: "none" },
  });
  expect(answer.headers.get("x-service-translation-loss")).toBe("reasoning_effort");
});

describe("thinking that is off, at a model that cannot stop,", () => {
  const off = { max_tokens: 900, thinking: { type: "disabled" } };
  const askOff = (model: string, more: object = {}) => {
    scene.upstream.forget();
    const body = { ...ask(off), model: scene.idOf("openai", model), ...more };
    return scene.gateway.post("/messages", body);
  };

  const search = { tools: [{ type: "web_search_20250305", name: "web_search" }] };
  test.each([
    ["gpt-5", "minimal", {}],
    ["gpt-5", "low", search],
    ["gpt-5", "minimal", { temperature: 0 }],
    ["o3", "low", {}],
  ])("%s is as little as it knows: %s beside %j", async (model, least, more) => {
    const answer = await askOff(model, { ...more, provider: { only: ["openai"] } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-service-translation-loss")).toContain("thinking");
    const efforts = scene.upstream.received.map(
      ({ body }) => body["reasoning_effort"] ?? (body["reasoning"] as { effort: string }).effort,
    );
    expect(efforts).toEqual(["none", least]);
  });

  test("is refused where the caller wants no loss", async () => {
    const answer = await askOff("gpt-5", {
      provider: { only: ["openai"], require_parameters: true },
    });
    expect([answer.status, scene.upstream.received.length]).toEqual([400, 1]);
  });

  test("is refused where the client names the effort itself", async () => {
    scene.upstream.forget();
    const body = { ...ask({ reasoning_effort: "none" }), model: scene.idOf("openai", "gpt-5") };
    const answer = await scene.ask("/chat/completions", body, "openai");
    expect([answer.status, scene.upstream.received.length]).toEqual([400, 1]);
  });
});

describe("thoughts that another account has sealed", () => {
  const user = (text: string) => ({ role: "user", content: text });
  const sealed = (id: string, seal: string) => ({
    type: "reasoning",
    id,
    summary: [],
    encrypted_content: seal,
  });
  const said = { type: "message", role: "assistant", content: "Sunny.", id: "msg_1" };
  const call = {
    type: "function_call",
    call_id: "c",
    name: "look_up",
    arguments: "{}",
    id: "fc_1",
  };
  const output = { type: "function_call_output", call_id: "c", output: "rain" };
  /** Returns a seal of another account; each test has its own, since refused ones are remembered. */
  const others = (name: string) => `gAAAAABother${name}==`;
  const turns = (earlier: string, running: string) => [
    user("Weather?"),
    sealed("rs_1", earlier),
    said,
    user("Tomorrow?"),
    sealed("rs_2", running),
    call,
    output,
  ];

  const askResponses = (input: readonly object[], more: object = {}) => {
    scene.upstream.forget();
    return scene.ask(
      "/responses",
      { model: scene.idOf("openai", "gpt-5.5"), input, ...more },
      "openai",
    );
  };
  const sentInput = (index: number) => scene.upstream.received[index]?.body["input"];

  test("of earlier turns are left out, and those of the turn under way stay", async () => {
    const input = turns(others("A1"), "gAAAAABown2==");
    const answer = await askResponses(input, { stream: true });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-service-translation-loss")).toBe("input");
    expect(await answer.text()).toContain("response.completed");
    const { id: _, ...idless } = said;
    expect(sentInput(0)).toEqual(input);
    expect(sentInput(1)).toEqual([input[0], idless, ...input.slice(3)]);
    const trace = answer.headers.get("x-service-trace-id") ?? "";
    const record = await (await scene.gateway.get(`/generation?id=gen_${trace}`)).json();
    expect(record).toMatchObject({
      data: {
        attempts: [
          { provider: "openai", status: 400, outcome: "failed" },
          { provider: "openai", status: 200, outcome: "served" },
        ],
      },
    });
  });

  test("of the turn under way are left out where the refusal is about them", async () => {
    const input = turns("gAAAAABown1==", others("B1"));
    expect((await askResponses(input)).status).toBe(200);
    const { id: _, ...idlessCall } = call;
    const { id: __, ...idless } = said;
    expect(sentInput(1)).toEqual([input[0], idless, input[3], idlessCall, output]);
  });

  test("leave a search that followed them without its id", async () => {
    const search = {
      type: "web_search_call",
      status: "completed",
      action: { type: "search", query: "q" },
    };
    const input = [
      user("Weather?"),
      sealed("rs_1", others("G1")),
      { ...search, id: "ws_reasoned1" },
      said,
      user("Tomorrow?"),
    ];
    expect((await askResponses(input)).status).toBe(200);
    const { id: _, ...idless } = said;
    expect(sentInput(1)).toEqual([input[0], search, idless, input[4]]);
  });

  test("are left out once: a second refusal is the answer", async () => {
    const answer = await askResponses(turns(others("C1"), others("C2")));
    expect(answer.status).toBe(400);
    expect(scene.upstream.received).toHaveLength(2);
    const { error } = (await answer.json()) as { error: { metadata?: object } };
    expect(error).toMatchObject({ code: "bad_request" });
  });

  test("are refused where the caller wants no loss", async () => {
    scene.upstream.forget();
    const answer = await scene.gateway.post("/responses", {
      model: scene.idOf("openai", "gpt-5.5"),
      input: turns(others("D1"), others("D1")),
      provider: { only: ["openai"], require_parameters: true },
    });
    expect([answer.status, scene.upstream.received.length]).toEqual([400, 1]);
  });

  test("are left out at once in the next turn, and new ones stay", async () => {
    const input = turns(others("E1"), "gAAAAABown2==");
    await askResponses(input);
    const next = [...input, user("And then?"), sealed("rs_3", "gAAAAABown3=="), said, user("So?")];
    const answer = await askResponses(next);
    expect([answer.status, answer.headers.get("x-service-translation-loss")]).toEqual([
      200,
      "input",
    ]);
    const { id: _, ...idless } = said;
    expect(scene.upstream.received).toHaveLength(1);
    expect(sentInput(0)).toEqual([input[0], idless, ...next.slice(3)]);
  });

  test("are left out with a summary of earlier turns, of which the model is told", async () => {
    const summary = { type: "compaction", id: "cmp_1", encrypted_content: others("F1") };
    const answer = await askResponses([summary, user("So?")]);
    expect([answer.status, answer.headers.get("x-service-translation-loss")]).toEqual([
      200,
      "input",
    ]);
    expect(sentInput(1)).toEqual([
      { type: "message", role: "developer", content: expect.any(String) },
      user("So?"),
    ]);
  });

  test("of Gemini's calls have a text in their place", async () => {
    scene.upstream.forget();
    const [call] = chatCall()["tool_calls"] as object[];
    const extra_content = { google: { thought_signature: "gw1:google:other" } };
    const sealedCall = chatCall({ tool_calls: [{ ...call, extra_content }] });
    const body = chatHistory({ call: sealedCall });
    const model = scene.idOf("google", "gemini-3-flash-preview");
    const answer = await scene.ask("/chat/completions", { ...body, model }, "google");
    expect([answer.status, answer.headers.get("x-service-translation-loss")]).toEqual([
      200,
      "messages",
    ]);
    expect(scene.upstream.received[1]?.body).toHaveProperty(
      "contents.1.parts.0.thoughtSignature",
      "skip_thought_signature_validator",
    );
  });

  test("of a Messages conversation leave the turn under way to think on", async () => {
    scene.upstream.forget();
    const thought = (signature: string) => ({ type: "thinking", thinking: "Hm.", signature });
    const history = claudeHistory([thought("own")]);
    const before = [
      user("Hi"),
      { role: "assistant", content: [thought("othervendorA"), { type: "text", text: "Hello." }] },
    ];
    const messages = [...before, ...(history["messages"] as object[])];
    const thinking = { type: "enabled", budget_tokens: 1_024 };
    const answer = await scene.ask(
      "/messages",
      { ...history, messages, thinking, model: scene.idOf("anthropic", "claude-sonnet-4-5") },
      "anthropic",
    );
    expect([answer.status, answer.headers.get("x-service-translation-loss")]).toEqual([
      200,
      "messages",
    ]);
    expect(scene.upstream.received[1]?.body).toMatchObject({
      thinking,
      messages: [
        messages[0],
        { role: "assistant", content: [{ type: "text", text: "Hello." }] },
        ...messages.slice(2),
      ],
    });
  });
});

test("every rule is met by a test", () => {
  const unmet = vendorRules.filter(
    (rule) => !isNative(rule) && !(nameOf(rule) in translated) && !unreached.includes(nameOf(rule)),
  );
  expect(unmet.map(nameOf)).toEqual([]);
});
