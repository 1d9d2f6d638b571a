import { describe, expect, test } from "bun:test";
import { adaptIn, routeIn } from "../../../../../test/support/in-process.ts";
import type { UpstreamRoute } from "../../../catalog/model.ts";
import type { ProviderDeviations } from "../../../providers/provider-definition.ts";

type Fields = Record<string, unknown>;

/** What an upstream is sent of a client's members, and the names of what it is not told. */
function sent(
  members: Fields,
  { deviations = {}, ...more }: Partial<UpstreamRoute> & { deviations?: ProviderDeviations } = {},
): [Fields, string[]] {
  const { model, route } = routeIn("openai-chat");
  const own = { model, route: { ...route, ...more, provider: { ...route.provider, deviations } } };
  const body = { model: "acme/large", messages: [{ role: "user", content: "Hi" }], ...members };
  const { requestText, losses } = adaptIn("openai-chat", { body, route: own });
  const { model: _model, messages: _messages, ...rest } = JSON.parse(requestText) as Fields;
  return [rest, losses.map(({ field }) => field)];
}

test.each<[asked: Fields, rules: Parameters<typeof sent>[1], lost: string]>([
  [
    { temperature: 1.5 },
    { refuses: { always: ["temperature"], whileReasoning: [] }, deviations: { temperatureMax: 1 } },
    "temperature",
  ],
  [
    { response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } } },
    { supportedParameters: ["tools"], deviations: { jsonWithoutSchema: true } },
    "response_format",
  ],
])("%j, which is left out, is not fitted as well", (asked, rules, lost) => {
  expect(sent(asked, rules)).toEqual([{}, [lost]]);
});

describe("the reasoning object", () => {
  test.each<[asked: Fields, effort: string | undefined, losses: string[]]>([
    [{ effort: "low" }, "low", []],
    [{ enabled: false }, "none", []],
    [{ enabled: false, effort: "high" }, "none", []],
    [{ enabled: true }, "high", []],
    [{ max_tokens: 1_000 }, "low", ["reasoning.budget_tokens"]],
    [{ max_tokens: 50_000 }, "xhigh", ["reasoning.budget_tokens"]],
    [{ exclude: true }, undefined, []],
    [{ effort: "medium", summary: "auto" }, "medium", ["reasoning.summary"]],
    [{}, undefined, []],
  ])("%j becomes %p for a provider without it", (reasoning, effort, losses) => {
    expect(sent({ reasoning })).toEqual([
      effort === undefined ? {} : { reasoning_effort: effort },
      losses,
    ]);
  });

  test("is overridden by reasoning_effort, and both are limited to the declared levels", () => {
    expect(sent({ reasoning: { effort: "low" }, reasoning_effort: "high" })[0]).toEqual({
      reasoning_effort: "high",
    });
    const declared = { reasoning: { levels: ["low", "medium"] } };
    expect(sent({ reasoning: { effort: "high" } }, declared)[0]).toEqual({
      reasoning_effort: "medium",
    });
    expect(sent({ reasoning: { enabled: true } }, declared)[0]).toEqual({
      reasoning_effort: "medium",
    });
  });

  test("is sent unchanged to a provider with reasoning objects", () => {
    const reasoning = { max_tokens: 1_000, exclude: true, x: 1 };
    expect(sent({ reasoning }, { deviations: { reasoningObject: true } })).toEqual([
      { reasoning },
      [],
    ]);
  });
});

// OpenAI answers 400 "Unrecognized request argument supplied: usage".
describe("fields of OpenRouter", () => {
  const granted = { usage: { include: true }, include_reasoning: true };
  const extras = { route: "fallback", transforms: ["middle-out"], plugins: [{ id: "web" }] };

  test("are removed for other providers; those without a counterpart are named as lost", () => {
    expect(sent({ ...granted, ...extras, x_foo: 1 })).toEqual([
      { x_foo: 1 },
      ["route", "transforms", "plugins"],
    ]);
    expect(sent({ plugins: null })).toEqual([{}, []]);
  });

  test("are sent unchanged to OpenRouter", () => {
    const members = { ...granted, ...extras };
    expect(sent(members, { deviations: { reasoningObject: true } })).toEqual([members, []]);
  });
});

describe("response_format (reasoning rule 6)", () => {
  const format = { response_format: { type: "json_object" } };

  test.each<[declared: string[] | undefined, goes: boolean]>([
    [undefined, true],
    [[], true],
    [["response_format"], true],
    [["structured_outputs"], true],
    [["tools"], false],
  ])("is sent if the declared parameters are %j: %p", (supportedParameters, goes) => {
    expect(sent(format, supportedParameters && { supportedParameters })).toEqual(
      goes ? [format, []] : [{}, ["response_format"]],
    );
  });

  test("is omitted for clients of other dialects too", () => {
    const { model, route } = routeIn("openai-chat");
    const own = { model, route: { ...route, supportedParameters: ["tools"] } };
    const json = { type: "json_schema", name: "x", schema: { type: "object" } };
    const asked = { model: "acme/large", input: "Hi", text: { verbosity: "low", format: json } };
    const { requestText, losses } = adaptIn("openai-responses", { body: asked, route: own });
    expect([JSON.parse(requestText), losses]).toMatchObject([{}, [{ field: "response_format" }]]);
    expect(requestText).not.toContain("json_schema");
    const native = {
      model,
      route: { ...routeIn("openai-responses").route, supportedParameters: ["tools"] },
    };
    const kept = adaptIn("openai-responses", { body: asked, route: native });
    expect([JSON.parse(kept.requestText), kept.losses]).toMatchObject([
      { text: { verbosity: "low" } },
      [{ field: "text.format" }],
    ]);
    expect(kept.requestText).not.toContain("json_schema");
  });
});
