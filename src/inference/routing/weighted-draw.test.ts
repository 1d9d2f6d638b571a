import { describe, expect, test } from "bun:test";
import { planBody, planDependencies } from "../../../test/support/planned-body.ts";
import { planRow } from "../../../test/support/routing-row.ts";
import { readRoutingTable, type RoutingRow } from "../../../test/support/routing-table.ts";
import { seeded } from "../../../test/support/seeded.ts";

describe("the weighted draw (rule 1)", () => {
  const [{ catalog }] = readRoutingTable(
    "catalog\n  large: three 3 USD\n  large: one 1 USD\n  large: two 2 USD\n x | |",
  ) as [RoutingRow];

  /** How often each provider came first in so many draws. */
  function firsts(draws: number, now = ""): Record<string, number> {
    const counts: Record<string, number> = { one: 0, two: 0, three: 0 };
    const random = seeded(20_261_121);
    for (let draw = 0; draw < draws; draw += 1) {
      const [first = ""] = planRow(
        { catalog, given: now },
        { surface: "chat", random },
      ).order.split(", ");
      counts[first] = (counts[first] ?? 0) + 1;
    }
    return counts;
  }

  test("is weighted by the inverse square of the price: 36, 9 and 4 of 49", () => {
    const draws = 20_000;
    const counts = firsts(draws);
    const weights = { one: 36 / 49, two: 9 / 49, three: 4 / 49 };
    // Pearson's chi-squared with two degrees of freedom stays below 13.8 in 999 of 1,000 honest
    // draws.
    const chiSquared = Object.entries(weights).reduce((sum, [name, weight]) => {
      const expected = draws * weight;
      return sum + ((counts[name] ?? 0) - expected) ** 2 / expected;
    }, 0);
    expect(chiSquared).toBeLessThan(13.8);
  });

  test("excludes routes with an outage", () => {
    const counts = firsts(2_000, "one is out");
    expect(counts["one"]).toBe(0);
    expect((counts["two"] ?? 0) / (counts["three"] ?? 1)).toBeCloseTo(9 / 4, 0);
  });
});

test("a conversation with a name draws the same provider again, and others their share", () => {
  const [{ catalog }] = readRoutingTable(
    "catalog\n  large: one 1 USD\n  large: two 2 USD\n x | |",
  ) as [RoutingRow];
  // Each plan has a gateway of its own, which remembers nothing.
  const firstOf = (session_id: string): string | undefined => {
    const body = { model: "acme/large", messages: [{ role: "user", content: "Hi" }], session_id };
    const plan = planBody(planDependencies(catalog), { surface: "chat", body });
    return plan.candidates[0]?.route.provider.id;
  };
  const names = Array.from({ length: 1_000 }, (_, index) => `conversation ${index}`);
  const drawn = names.map(firstOf);
  expect(names.map(firstOf)).toEqual(drawn);
  const share = drawn.filter((name) => name === "one").length / names.length;
  expect(share).toBeWithin(0.76, 0.84);
});

test("each excluded route is listed with its rule", () => {
  const table =
    "catalog\n  large: a 1 USD, no tools\n  large: b 2 USD\n  large: c 3 USD\n x | tools; ignore: [b] | c";
  const [row] = readRoutingTable(table) as [RoutingRow];
  expect(planRow(row, { surface: "chat" }).plan?.leftOut).toEqual([
    { provider: "b", model: "acme/large", rule: "ignore" },
    { provider: "a", model: "acme/large", rule: "tools" },
  ]);
});
