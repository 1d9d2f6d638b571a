import { afterAll, beforeAll, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "./at.ts";
import { chatRequest } from "./chat-request.ts";

const pricing = { prompt: "0.50", completion: "1.50" };
const declared = (levels: string[], chosen?: string): unknown => ({
  levels,
  ...(chosen === undefined ? {} : { default: chosen }),
});

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl, {
        models: [
          { id: "acme/three", pricing, reasoning: declared(["low", "medium", "high"], "medium") },
          { id: "acme/high-only", pricing, reasoning: declared(["high"], "high") },
          { id: "acme/no-default", pricing, reasoning: declared(["minimal", "medium"]) },
          { id: "acme/silent", pricing },
          {
            id: "acme/any-order",
            pricing,
            reasoning: declared(["high", "ultra", "low", "medium"], "medium"),
          },
        ],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

/**
 * Model, effort asked for, effort sent; undefined is an absent field. Contract: reasoning rules 1,
 * 3 and 4.
 */
const rows: readonly [model: string, asked: unknown, sent: unknown, rule: string][] = [
  ["acme/three", "low", "low", "a supported level"],
  ["acme/three", "high", "high", "a supported level"],
  ["acme/three", "xhigh", "high", "the nearest lower level"],
  ["acme/three", "max", "high", "the nearest lower level"],
  ["acme/three", "minimal", "low", "the lowest level where all are higher"],
  ["acme/three", "ludicrous", "medium", "the default for an unknown tier"],
  ["acme/three", "none", "none", "the disable sentinel, never clamped"],
  ["acme/three", undefined, undefined, "omitted stays omitted"],
  ["acme/three", null, null, "null is the caller's way of omitting"],
  ["acme/high-only", "low", "high", "the lowest level where all are higher"],
  ["acme/high-only", "none", "none", "the disable sentinel, never clamped"],
  ["acme/no-default", "high", "medium", "the nearest lower level"],
  ["acme/no-default", "low", "minimal", "the nearest lower level"],
  ["acme/no-default", "ludicrous", undefined, "no default: left to the provider"],
  [
    "acme/any-order",
    "max",
    "high",
    "the nearest lower level, in whichever order they are declared",
  ],
  ["acme/any-order", "minimal", "low", "the lowest level where all are higher"],
  ["acme/any-order", "ultra", "ultra", "a level of the model's own"],
  ["acme/silent", "ludicrous", "ludicrous", "no declared levels: unchanged"],
  ["acme/silent", "xhigh", "xhigh", "no declared levels: unchanged"],
];

test.each(rows)("%s, reasoning_effort %p is sent as %p: %s", async (model, asked, sent) => {
  const fields = asked === undefined ? {} : { reasoning_effort: asked };
  const response = await gateway.post("/chat/completions", chatRequest({ model, ...fields }));
  expect(response.status).toBe(200);
  await response.text();
  expect(at(upstream.requests.at(-1)?.json(), "reasoning_effort")).toBe(sent);
});

/** Rules 1 and 2: what switches thinking off in its dialect does so beside any effort. */
const switchedOff: readonly [path: string, body: Record<string, unknown>][] = [
  [
    "/messages",
    {
      max_tokens: 64,
      messages: [{ role: "user", content: "Hi" }],
      thinking: { type: "disabled" },
      output_config: { effort: "high" },
    },
  ],
  ["/responses", { input: "Hi", reasoning: { enabled: false, effort: "high" } }],
];

test.each(switchedOff)(
  "%s: disabled thinking is sent as `none` even with an effort",
  async (path, body) => {
    const response = await gateway.post(path, { model: "acme/three", ...body });
    expect(response.status).toBe(200);
    await response.text();
    expect(at(upstream.requests.at(-1)?.json(), "reasoning_effort")).toBe("none");
  },
);

test("each fallback attempt is clamped to the levels of its own model", async () => {
  upstream.enqueue(json({}, { status: 503 }), json({}, { status: 503 }));
  const before = upstream.requests.length;
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({
      model: "acme/three",
      models: ["acme/no-default", "acme/silent"],
      reasoning_effort: "xhigh",
    }),
  );
  expect(response.status).toBe(200);
  await response.text();
  expect(
    upstream.requests.slice(before).map((request) => at(request.json(), "reasoning_effort")),
  ).toEqual(["high", "medium", "xhigh"]);
});
