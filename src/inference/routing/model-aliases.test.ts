import { expect, test } from "bun:test";
import { seeded } from "../../../test/support/seeded.ts";
import { chooseModels, type AliasFacts } from "./model-aliases.ts";

const facts = (changes: Partial<AliasFacts> = {}): AliasFacts => ({
  key: { name: "Batch", hash: "h1" },
  headerOf: () => null,
  body: {},
  conversation: undefined,
  random: () => 0,
  mayUse: () => true,
  ...changes,
});

const canary = [
  { model: "acme/a", weight: 9 },
  { model: "acme/b", weight: 1 },
];

test("a canary of a tenth is a tenth of 10,000 requests, with and without conversations", () => {
  const random = seeded(7);
  for (const conversation of [(): undefined => undefined, (index: number) => `talk ${index}`]) {
    let count = 0;
    for (let index = 0; index < 10_000; index += 1) {
      const [model] = chooseModels("split", {
        target: canary,
        facts: facts({ random, conversation: conversation(index) }),
      });
      if (model === "acme/b") count += 1;
    }
    // Four standard deviations.
    expect(Math.abs(count - 1_000)).toBeLessThan(120);
  }
});

test("a share is never drawn that the key may not use, unless it may use none", () => {
  const drawn = (mayUse: AliasFacts["mayUse"]): Set<string | undefined> =>
    new Set(
      Array.from({ length: 100 }, (_, index) => {
        const random = (): number => index / 100;
        return chooseModels("split", { target: canary, facts: facts({ random, mayUse }) })[0];
      }),
    );
  expect(drawn((model) => model === "acme/a")).toEqual(new Set(["acme/a"]));
  expect(drawn((model) => model === "acme/b")).toEqual(new Set(["acme/b"]));
  expect(drawn(() => false)).toEqual(new Set(["acme/a", "acme/b"]));
});

test("a conversation keeps its model", () => {
  for (let index = 0; index < 200; index += 1) {
    const chosen = [0, 0.3, 0.95].map((value) =>
      chooseModels("split", {
        target: canary,
        facts: facts({ random: () => value, conversation: `talk ${index}` }),
      }),
    );
    expect(new Set(chosen.flat()).size).toBe(1);
  }
});

test.each<[what: string, changes: Partial<AliasFacts>, models: string[]]>([
  ["its key's name", {}, ["acme/batch"]],
  [
    "a header",
    {
      key: { name: "other", hash: "" },
      headerOf: (name) => (name === "x-team" ? "research" : null),
    },
    ["acme/large", "acme/small"],
  ],
  ["a tag", { key: { name: "", hash: "" }, body: { metadata: { tags: ["eu"] } } }, ["acme/eu"]],
  ["metadata", { key: { name: "", hash: "" }, body: { metadata: { tier: 2 } } }, ["acme/tier"]],
  ["none", { key: { name: "", hash: "" } }, ["acme/small"]],
])("the first entry counts whose condition is met: %s", (_, changes, models) => {
  const target = [
    { model: "acme/batch", when: { key: "Batch" } },
    { model: ["acme/large", "acme/small"], when: { header: { "x-team": "research" } } },
    { model: "acme/eu", when: { tag: "eu" } },
    { model: "acme/tier", when: { metadata: { tier: 2 } } },
    { model: "acme/small" },
  ];
  expect(chooseModels("smart", { target, facts: facts(changes) })).toEqual(models);
});

test("a list without weights and conditions is a list of fallbacks", () => {
  expect(chooseModels("chain", { target: ["acme/a", "acme/b"], facts: facts() })).toEqual([
    "acme/a",
    "acme/b",
  ]);
});
