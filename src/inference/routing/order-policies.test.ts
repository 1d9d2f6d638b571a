import { expect, test } from "bun:test";
import { seeded } from "../../../test/support/seeded.ts";
import { sortByCost } from "./order-policies.ts";

test.each([0, 1, 2, 10, 63, 64, 65, 300])(
  "sorts %i candidates by ascending cost, stably, with unpriced ones last",
  (length) => {
    const random = seeded(length);
    const costs = [0, 1, 2.5, 7, Number.POSITIVE_INFINITY];
    const all = Array.from({ length }, (_, index) => ({
      index,
      cost: costs[Math.floor(random() * costs.length)] as number,
    }));
    const expected = costs.flatMap((cost) => all.filter((one) => one.cost === cost));
    sortByCost(all);
    expect(all).toEqual(expected);
  },
);
