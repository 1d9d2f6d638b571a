import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { largeCatalog, modelIdAt } from "../../../test/support/large-catalog.ts";
import { callOn, planDependencies, type Body } from "../../../test/support/planned-body.ts";
import type { CatalogModel, CatalogSnapshot, UpstreamRoute } from "../catalog/model.ts";
import { planCall } from "../pipeline/plan/plan-call.ts";
import { HealthWindows } from "./health/health-windows.ts";

/** Models by id; planning must not go through all of them. */
class LookUpOnly extends Map<string, CatalogModel> {
  private readonly refuse = (): never => {
    throw new Error("planning goes through the whole catalog");
  };

  seal(): this {
    for (const name of ["keys", "values", "entries", "forEach", Symbol.iterator])
      Object.defineProperty(this, name, { value: this.refuse });
    return this;
  }
}

/** A catalog that counts how often any of its rows is looked at, and refuses to be gone through. */
function watched(models: number): { catalog: CatalogSnapshot; looks(): number } {
  const snapshot = largeCatalog({ models, routesPerModel: 10 });
  let looks = 0;
  for (const route of new Set([...snapshot.models.values()].flatMap(({ routes }) => routes))) {
    const { provider } = route;
    Object.defineProperty(route, "provider", {
      get: () => {
        looks += 1;
        return provider;
      },
    });
  }
  return {
    catalog: { ...snapshot, models: new LookUpOnly(snapshot.models).seal() },
    looks: () => looks,
  };
}

const [small, large] = [watched(300), watched(1_500)];

function planned(
  { catalog, looks }: ReturnType<typeof watched>,
  body: Body,
): { looks: number; candidates: number; leftOut: number } {
  const deps = planDependencies(catalog);
  const call = callOn(
    "chat",
    { messages: [{ role: "user", content: "hi" }], ...body },
    { forcedProviders: body["forced"] as string[] },
  );
  // What is collected once a catalog, such as the names of its providers, is no part of any
  // request.
  planCall(deps, call);
  const before = looks();
  const { candidates, leftOut } = planCall(deps, call);
  return { looks: looks() - before, candidates: candidates.length, leftOut: leftOut.length };
}

test.each<[string, Body]>([
  ["one model", { model: modelIdAt(0) }],
  ["one model in another case, with a suffix", { model: `${modelIdAt(0).toUpperCase()}:Nitro` }],
  ["a model and its fallbacks", { model: modelIdAt(0), models: [modelIdAt(1), modelIdAt(2)] }],
  ["a header with provider names", { model: modelIdAt(0), forced: ["P1", "p2"] }],
  [
    "many fields of the provider object",
    {
      model: modelIdAt(0),
      provider: {
        ignore: ["p1"],
        zdr: true,
        sort: { by: "price", partition: "none" },
        max_price: { prompt: "50" },
        min_context: 100,
      },
    },
  ],
  ["service/auto", { model: "service/auto" }],
  ["service/auto with suffixes", { model: "service/auto:floor[100k]" }],
  ["service/free", { model: "service/free" }],
  ["service/latest", { model: "service/latest" }],
])("planning %s does not depend on the size of the catalog", (_, body) => {
  const work = planned(small, body);
  expect(work.candidates).toBeGreaterThan(0);
  expect(planned(large, body)).toEqual(work);
});

const hello: Body = { messages: [{ role: "user", content: "hi" }] };

test.each(["one model", "service/auto", "service/free"])(
  "planning %s reads no cached row data again",
  (name) => {
    const body = name === "one model" ? { model: modelIdAt(0) } : { model: name };
    expect(planned(large, body).looks).toBe(0);
  },
);

test("whether a route can be called is checked once per catalog, with the same message each time", () => {
  const asked: string[] = [];
  const isServable = ({ provider }: UpstreamRoute): boolean => {
    asked.push(provider.id);
    return asked.length % 2 === 0;
  };
  const deps = {
    ...planDependencies(largeCatalog({ models: 20, routesPerModel: 10 })),
    isServable,
  };
  const plan = () => planCall(deps, callOn("chat", { ...hello, model: modelIdAt(0) }));
  const [first, second] = [plan(), plan()];
  expect(asked).toHaveLength(10);
  expect([first.candidates.length, first.leftOut.length]).toEqual([5, 5]);
  first.leftOut.forEach((left, index) => expect(second.leftOut[index]).toBe(left));
});

test("planning reads the clock once, and the state of each provider once", () => {
  let readings = 0;
  const asked: string[] = [];
  const clock = Object.assign(new FakeClock(), { monotonicMs: () => (readings += 1) });
  const health = new HealthWindows(clock, (id) => void asked.push(id));
  const deps = planDependencies(largeCatalog({ models: 300, routesPerModel: 10 }), { health });
  const call = callOn("chat", { ...hello, model: "service/auto" });
  planCall(deps, call);
  [readings, asked.length] = [0, 0];
  const { candidates } = planCall(deps, call);
  expect(readings).toBe(1);
  expect(asked.toSorted()).toEqual(
    [...new Set(candidates.map(({ route }) => route.provider.id))].toSorted(),
  );
  expect(asked.length).toBeLessThan(candidates.length);
});

test("the reason of a candidate is composed when it is read", () => {
  const { candidates } = planCall(
    planDependencies(large.catalog),
    callOn("chat", { ...hello, model: "service/auto" }),
  );
  expect(candidates.filter((candidate) => Object.hasOwn(candidate, "reason"))).toEqual([]);
  expect(candidates[0]?.reason).toBe("quality member; weighted by price");
  // What candidates hold are words that they share: two of them for the members, two for the
  // places.
  const texts = candidates.flatMap((candidate) =>
    Object.values(candidate).filter((value) => typeof value === "string" && value !== ""),
  );
  expect(new Set(texts).size).toBeLessThanOrEqual(4);
});

test("an unknown model is refused without a search of the catalog", () => {
  expect(() => planned(large, { model: "nobody/nothing" })).toThrow("is not in the catalog");
});
