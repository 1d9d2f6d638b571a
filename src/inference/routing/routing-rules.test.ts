import { describe, expect, test } from "bun:test";
import { planRow, readRoutingTable, type RoutingRow } from "../../../test/support/routing-table.ts";

/**
 * The contract's routing rules as tables. A block begins with its catalog, `model: provider price`: USD for a million
 * tokens in and a million out, or `in/out`. Then a row for each case: what it shows | what is so at present, and what the
 * request says, in the words of its `provider` object or in plain ones | who is tried in which order. Where there are several
 * models, that is `model@provider`. A line with `because` tells why the first one is first. The draw always falls on the
 * cheapest.
 */
const tables = `
catalog
  large: dear 3 USD
  large: cheap 1 USD
  large: middle 2 USD
rule 1: drawn by price, the rest by price      |                                              | cheap, middle, dear
                                                 because weighted by price
an outage within 30 seconds puts it last       | cheap is out                                 | middle, dear, cheap
                                                 because weighted by price
all of them out: still tried, by price         | cheap is out; dear is out; middle is out     | cheap, middle, dear
                                                 because outage in the last 30 seconds
an outage of this model alone counts, too      | cheap is out for large                       | middle, dear, cheap
an outage of another model does not            | cheap is out for small                       | cheap, middle, dear
rule 2: order is order, whatever is out        | middle is out; order: [middle, dear]         | middle, dear, cheap
                                                 because order
order, the rest by price                       | order: [dear]                                | dear, cheap, middle
rule 2: sort looks at no outage                | cheap is out; sort: price                    | cheap, middle, dear
                                                 because sort price
rule 5: price                                  | sort: price                                  | cheap, middle, dear
cost is another name of price                  | sort: cost                                   | cheap, middle, dear
as an object                                   | sort: {by: price}                            | cheap, middle, dear
latency: the lowest median, unknown last       | dear begins in 0.2 s                         | dear, cheap, middle
                                               | cheap begins in 0.1 0.9 0.9 s; sort: latency |
                                                 because sort latency
ttft is another name of latency                | dear begins in 0.2 s; sort: ttft             | dear, cheap, middle
throughput: the highest median, unknown last   | dear makes 90 tok/s                          | middle, dear, cheap
                                               | middle makes 20 300 300 tok/s                |
                                               | sort: throughput                             |
                                                 because sort throughput
tps is another name of throughput              | dear makes 90 tok/s; sort: {by: tps}         | dear, cheap, middle
rule 7: slugs or display names, in any case    | order: [MIDDLE INC, Dear]                    | middle, dear, cheap
only                                           | only: [dear, Cheap Inc]                      | cheap, dear
only a stranger                                | only: [nobody]                               | nobody: only
ignore                                         | ignore: [cheap]                              | middle, dear
no fallbacks: the top candidate alone          | allow_fallbacks: false                       | cheap
no fallbacks behind an order                   | order: [dear]; allow_fallbacks: false        | dear
a header forces a backend                      | header names dear                            | dear
a header's order wins over the provider object | header names dear then cheap; only: [middle] | dear, cheap
max_price is hard                              | max_price: {prompt: "2"}                     | cheap, middle
max_price that nobody meets                    | max_price: {completion: "0.5"}               | nobody: max_price
rule 4: soft, a miss goes to the end           | cheap begins in 2 s                          | middle, dear, cheap
                                               | preferred_max_latency: 1                     |
                                                 because weighted by price
what keeps it stays                            | cheap begins in 0.5 s                        | cheap, middle, dear
                                               | preferred_max_latency: 1                     |
nothing known misses nothing                   | preferred_max_latency: 0.001                 | cheap, middle, dear
all of them miss it: drawn as ever             | cheap begins in 2 s; middle begins in 2 s    | cheap, middle, dear
                                               | dear begins in 2 s; preferred_max_latency: 1 |
                                                 because misses preferred_max_latency
a number is that of the median                 | cheap begins in 0.1 0.1 9 s                  | cheap, middle, dear
                                               | preferred_max_latency: 1                     |
an object: every cutoff has to be met          | cheap begins in 0.1 0.1 9 s                  | middle, dear, cheap
                                               | preferred_max_latency: {p50: 1, p90: 1}      |
p75 of three is the third                      | cheap begins in 0.1 0.1 9 s                  | middle, dear, cheap
                                               | preferred_max_latency: {p75: 1}              |
p99                                            | cheap begins in 0.1 0.1 9 s                  | cheap, middle, dear
                                               | preferred_max_latency: {p99: 10}             |
throughput: nine of ten are as fast            | cheap makes 9 50 50 tok/s                    | middle, dear, cheap
                                               | preferred_min_throughput: {p50: 40, p90: 40} |
throughput of the median                       | cheap makes 9 50 50 tok/s                    | cheap, middle, dear
                                               | preferred_min_throughput: 40                 |
a miss stands before an outage                 | cheap begins in 2 s; dear is out             | middle, cheap, dear
                                               | preferred_max_latency: 1                     |
a miss goes to the end of an order, too        | dear begins in 2 s; order: [dear, middle]    | middle, cheap, dear
                                               | preferred_max_latency: 1                     |
                                                 because order
nobody knows the sort                          | sort: vibes                                  | refused: provider.sort
                                                 because bad_request
nobody knows the percentile                    | preferred_max_latency: {p95: 1}              | refused: provider.preferred_max_latency.p95
a cutoff that is no number                     | preferred_max_latency: {p90: soon}           | refused: provider.preferred_max_latency.p90
a price that is none                           | max_price: {prompt: cheap}                   | refused: provider.max_price.prompt
rule 6: nitro                                  | dear makes 90 tok/s; model large:nitro       | dear, cheap, middle
                                                 because sort throughput
floor, in any case                             | cheap is out; model LARGE:Floor              | cheap, middle, dear
                                                 because sort price
fast                                           | dear begins in 0.2 s; model large:fast       | dear, cheap, middle
                                                 because sort latency
the provider object wins over a suffix         | dear begins in 0.2 s; model large:fast       | cheap, middle, dear
                                               | sort: price                                  |
suffixes that contradict each other            | model large:fast:floor                       | refused: model
                                                 because bad_request
a bracket is for routers                       | model large[1m]                              | refused: model
                                                 because model_unavailable
no free copy: never a paid one instead         | model large:free                             | refused: model
                                                 because model_unavailable
a session stays, also where it is dearer       | session was at large@dear                    | dear, cheap, middle
                                                 because served the session last; fallback by price
a session whose provider is out moves          | session was at large@dear; dear is out       | cheap, middle, dear (moved)
                                                 because weighted by price
one whose provider is not allowed moves        | session was at large@dear; ignore: [dear]    | cheap, middle (moved)
an order is followed, and the session moves    | session was at large@dear; order: [middle]   | middle, cheap, dear (moved)
                                                 because order
a session stays through a sort                 | session was at large@dear; sort: price       | dear, cheap, middle
                                                 because served the session last; sort price
the session of another model says nothing      | session was at small@dear                    | cheap, middle, dear

catalog
  mixed: a 1 USD, zdr, no tools, int4, holds 8k
  mixed: b 2 USD, collects nothing, writes 1k, fp8, holds 32k
  mixed: c 3 USD, distillable, bf16, holds 128k, 9 USD above 100k
tools: who takes them                        | tools                                    | b, c
a format: those who declare it first         | JSON                                     | b, c, a
                                               because weighted by price
max_tokens: who writes that much             | 2k tokens out                            | a, c
min_context                                  | min_context: 32000                       | b, c
zdr                                          | zdr: true                                | a
                                               because only route
data_collection: zdr collects nothing either | data_collection: deny                    | a, b
distillable text                             | enforce_distillable_text: true           | c
quantizations, in any case                   | quantizations: [FP8, int4]               | a, b
exacto: higher precision first               | sort: exacto                             | c, b, a
                                               because sort exacto
exacto as a suffix                           | model mixed:exacto                       | c, b, a
require_params                               | require_params: [tools]                  | b, c
the price of long input is that of its tier  | 120k tokens in; max_price: {prompt: "3"} | a, b
short input has the base price               | 5k tokens in; max_price: {prompt: "3"}   | a, b, c
nothing left, and which rule took the last   | zdr: true; tools                         | nobody: tools

catalog
  large: a 5 USD
  large: b 6 USD
  small: c 1 USD
  small: a 2 USD
rule 3: the first model's providers first | model large then small; sort: price                | large@a, large@b, small@c, small@a
without a sort, too                       | a is out; model large then small                   | large@b, large@a, small@c, small@a
partition none: all together              | model large then small                             | small@c, small@a, large@a, large@b
                                          | sort: {by: price, partition: none}                 |
a key that may not use a model            | model large then small; key may use small          | small@c, small@a
a key that may use neither                | model large; key may use small                     | nobody: allowed_models
a session of the first model only         | session was at small@a for acme/large              | large@a, large@b, small@c, small@a (moved)
                                          | model large then small                             |

catalog
  flag: p 10 USD, thinks, sees images, holds 400k
  flag: q 12 USD, thinks, sees images, holds 400k
  code: p 4 USD, thinks, holds 1000k
  tiny: p 1 USD, holds 16k
  gift:free: r 0 USD, holds 32k
  deal: r 2 USD, holds 32k
  service/auto: flag; tiny, code
  service/free: ; gift:free, deal
a router: quality members first, then the pool | model service/auto                                | flag@p, flag@q, tiny@p, code@p
                                                 because quality member; weighted by price
low effort: a small one will do                | model service/auto; effort low                    | tiny@p, code@p, flag@p, flag@q
                                                 because cheapest member, for a light request; weighted by price
but not with tools                             | model service/auto; effort low; tools             | flag@p, flag@q, tiny@p, code@p
nor with long input                            | model service/auto; effort low; 10k tokens in     | flag@p, flag@q, tiny@p, code@p
nor with exacto                                | model service/auto:exacto; effort low             | flag@p, flag@q, tiny@p, code@p
                                                 because quality member; sort exacto
images go to members that see                  | model service/auto; images                        | flag@p, flag@q
high effort: first those that think            | model service/auto; effort high                   | flag@p, flag@q, code@p, tiny@p
what may be too short comes last               | model service/auto; 200k tokens in                | flag@p, flag@q, code@p, tiny@p
a bracket is a minimum                         | model service/auto[1m]                            | code@p
                                                 because member; only route
brackets and suffix together, in any case      | model service/AUTO[300K]:Exacto                   | flag@p, flag@q, code@p
the other way round                            | model service/auto:exacto[300k]                   | flag@p, flag@q, code@p
the higher minimum counts                      | model service/auto[16k]; min_context: 500000      | code@p
floor: the cheapest of all members             | model service/auto:floor                          | tiny@p, code@p, flag@p, flag@q
                                                 because member; sort price
order: the named provider first                | model service/auto; order: [q]                    | flag@q, flag@p, tiny@p, code@p
                                                 because quality member; order
an outage puts it last for all members         | p is out; model service/auto                      | flag@q, flag@p, tiny@p, code@p
a key's list narrows the pool                  | model service/auto                                | code@p
                                               | key may use code and gift:free                    |
a key whose models are no members              | model service/auto; key may use deal              | nobody: allowed_models
free: never a member that costs                | model service/free                                | gift:free@r
free: not even where it is the only one        | model service/free; min_context: 64000            | nobody: min_context
a free id with a suffix                        | model gift:free:floor                             | gift:free@r
a member named beside its router is tried once | model service/auto then deal then code            | flag@p, flag@q, tiny@p, code@p, deal@r
a session stays with its member                | session was at code@p for service/auto            | code@p, flag@p, flag@q, tiny@p
                                               | model service/auto                                |
                                                 because served the session last; member; weighted by price
`;

const rows = readRoutingTable(tables);

describe("routing rules", () => {
  test.each(rows.map((row) => [row.shows, row] as const))("%s", (_, row) => {
    const { order, why } = planRow(row);
    expect(order).toBe(row.order);
    if (row.why !== "") expect(why).toBe(row.why);
  });
});

/** A generator of Steele, Lea and Flood (SplitMix32's finalizer, "Fast splittable pseudorandom number generators", 2014). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

describe("the draw of rule 1", () => {
  const [{ catalog }] = readRoutingTable("catalog\n  large: three 3 USD\n  large: one 1 USD\n  large: two 2 USD\n x | |") as [RoutingRow];

  /** How often each provider came first in so many draws. */
  function firsts(draws: number, now = ""): Record<string, number> {
    const counts: Record<string, number> = { one: 0, two: 0, three: 0 };
    const random = seeded(20_261_121);
    for (let draw = 0; draw < draws; draw += 1) {
      const [first = ""] = planRow({ catalog, given: now }, random).order.split(", ");
      counts[first] = (counts[first] ?? 0) + 1;
    }
    return counts;
  }

  test("is weighted by the inverse square of price: 36, 9 and 4 of 49", () => {
    const draws = 20_000;
    const counts = firsts(draws);
    const weights = { one: 36 / 49, two: 9 / 49, three: 4 / 49 };
    // Pearson's chi-squared with two degrees of freedom stays below 13.8 in 999 of 1,000 honest draws.
    const chiSquared = Object.entries(weights).reduce((sum, [name, weight]) => {
      const expected = draws * weight;
      return sum + ((counts[name] ?? 0) - expected) ** 2 / expected;
    }, 0);
    expect(chiSquared).toBeLessThan(13.8);
  });

  test("is among those without an outage", () => {
    const counts = firsts(2_000, "one is out");
    expect(counts["one"]).toBe(0);
    expect((counts["two"] ?? 0) / (counts["three"] ?? 1)).toBeCloseTo(9 / 4, 0);
  });
});

test("what is left out is named with its rule", () => {
  const table = "catalog\n  large: a 1 USD, no tools\n  large: b 2 USD\n  large: c 3 USD\n x | tools; ignore: [b] | c";
  const [row] = readRoutingTable(table) as [RoutingRow];
  expect(planRow(row).plan?.leftOut).toEqual([
    { provider: "b", model: "acme/large", rule: "ignore" },
    { provider: "a", model: "acme/large", rule: "tools" },
  ]);
});
