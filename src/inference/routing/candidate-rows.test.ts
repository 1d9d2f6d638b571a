import { expect, test } from "bun:test";
import { type Candidate, leftOutOf, permits, type RouteRow, supports } from "./candidate.ts";

/** A candidate whose model and route declare these parameters. */
const declaring = (model: string[] | undefined, route: string[] | undefined): Candidate =>
  ({
    model: { supportedParameters: model },
    route: { supportedParameters: route },
  }) as unknown as Candidate;

const rows: readonly [
  model: string[] | undefined,
  route: string[] | undefined,
  permitted: boolean,
  supported: boolean,
  why: string,
][] = [
  [undefined, undefined, true, true, "nothing is declared"],
  [[], [], true, true, "an empty list declares nothing"],
  [["temperature"], ["temperature", "tools"], true, true, "the route's own list decides"],
  [["tools"], ["temperature"], false, false, "the route's own list decides"],
  [
    ["temperature"],
    undefined,
    true,
    false,
    "a route without a list permits all, but supports only what the model declares",
  ],
];

test.each(rows)(
  "model %j, route %j: permits is %p, supports is %p, because %s",
  (model, route, permitted, supported) => {
    const candidate = declaring(model, route);
    expect([permits(candidate, "tools"), supports(candidate, "tools")]).toEqual([
      permitted,
      supported,
    ]);
  },
);

test.each([
  ["max_tokens", "max_completion_tokens"],
  ["reasoning", "reasoning_effort"],
])("%s and %s count as one parameter", (one, other) => {
  expect([
    supports(declaring([one], undefined), other),
    supports(declaring([other], undefined), one),
  ]).toEqual([true, true]);
  expect(supports(declaring([one], undefined), "seed")).toBe(false);
});

test.each([
  ["a key", {}, { surface: "chat" }, "the gateway has no key for it"],
  ["a price", { apiKey: "k" }, { surface: "chat" }, "it has no price"],
  ["an address", { apiKey: "k" }, { surface: "decisions" }, "the gateway's key does not serve it"],
])("a route without %s is left out for that reason", (_, credential, model, rule) => {
  const row = {
    provider: { id: "acme" },
    route: { provider: credential },
    model: { id: "acme/large", ...model },
  } as unknown as RouteRow;
  const left = leftOutOf(row);
  expect(left).toMatchObject({ provider: "acme", model: "acme/large" });
  expect(left.rule).toStartWith(rule);
});
