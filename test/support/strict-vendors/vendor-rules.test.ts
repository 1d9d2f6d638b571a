import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Endpoint, vendorIds, type VendorRule } from "./rule.ts";
import { startStrictUpstream, type StrictUpstream } from "./strict-upstream.ts";
import { nameOf, refusalsOf, vendorRules } from "./vendor-rules.ts";

let upstream: StrictUpstream;
beforeAll(async () => {
  upstream = await startStrictUpstream();
});
afterAll(() => upstream.stop());

const pathOf: Readonly<Record<Endpoint, (model: string) => string>> = {
  chat: () => "/chat/completions",
  completions: () => "/completions",
  responses: () => "/responses",
  messages: () => "/messages",
  generate: (model) => `/models/${model}:generateContent`,
  converse: (model) => `/model/${encodeURIComponent(model)}/converse`,
};

const send = ({ vendor, endpoint }: VendorRule, model: string, body: object): Promise<Response> =>
  fetch(upstream.baseUrl(vendor) + pathOf[endpoint](model), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, ...body }),
  });

describe("what vendors refuse", () => {
  test("at least 120 rules, some of every vendor, each with its own name and its source", () => {
    expect(vendorRules.length).toBeGreaterThanOrEqual(120);
    expect(new Set(vendorRules.map(({ vendor }) => vendor))).toEqual(new Set(vendorIds));
    expect(new Set(vendorRules.map(nameOf)).size).toBe(vendorRules.length);
    for (const { source } of vendorRules) expect(source).toMatch(/^recalled$|\(20\d\d[-\d]*\)$/);
  });

  test.each(vendorRules.map((rule) => [nameOf(rule), rule] as const))(
    "%s refuses its own example, with the vendor's status and body",
    async (name, rule) => {
      const { model, body } = rule.violates;
      expect(model).toMatch(rule.models);
      const request = { endpoint: rule.endpoint, model, body: { model, ...body } };
      expect(refusalsOf(rule.vendor, request).map(nameOf)).toContain(name);
      upstream.forget();
      const answer = await send(rule, model, body);
      const [first] = refusalsOf(rule.vendor, request);
      expect(answer.status).toBe(first?.status ?? 0);
      expect(await answer.json()).toEqual(first?.body(request) as object);
      expect(upstream.refusals[0]?.rules).toContain(name);
    },
  );

  test("Anthropic's joins consecutive turns of a side before calls and results are paired", () => {
    const use = (id: string) => [{ type: "tool_use", id, name: "look_up", input: {} }];
    const result = (id: string) => [{ type: "tool_result", tool_use_id: id, content: "21" }];
    const [assistant, user] = ["assistant", "user"];
    const body = {
      max_tokens: 900,
      tools: [{ name: "look_up", input_schema: { type: "object" } }],
      messages: [
        { role: user, content: "Hi" },
        { role: assistant, content: use("toolu_1") },
        { role: assistant, content: use("toolu_2") },
        { role: user, content: result("toolu_1") },
        { role: user, content: result("toolu_2") },
      ],
    };
    const request = { endpoint: "messages", model: "claude-sonnet-4-5", body } as const;
    expect(refusalsOf("anthropic", request).map(nameOf)).toEqual([]);
  });
});
