import { describeRoutingTable } from "../../../test/support/describe-routing-table.ts";

/** Suffixes, routers and sessions as tables; routing-rules.test.ts says how they are read. */
describeRoutingTable(
  "suffixes and routers",
  `
catalog
  large: dear 3 USD
  large: cheap 1 USD
  large: middle 2 USD
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
a suffix says what sort does, of an order too  | model large:floor; order: [dear]             | dear, cheap, middle
                                                 because order
two suffixes that say the same                 | model large:floor:Floor                      | cheap, middle, dear
a suffix nobody knows is part of the id        | model large:turbo                            | refused: model
                                                 because model_unavailable

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
a key whose models are no members              | model service/auto; key may use deal              | refused: model
                                                 because forbidden
free: never a member that costs                | model service/free                                | gift:free@r
free: not even where it is the only one        | model service/free; min_context: 64000            | nobody: min_context
a free id with a suffix                        | model gift:free:floor                             | gift:free@r
a member named beside its router is tried once | model service/auto then deal then code            | flag@p, flag@q, tiny@p, code@p, deal@r
nitro: the fastest first, of all members       | q makes 200 tok/s; p makes 90 tok/s               | flag@q, flag@p, tiny@p, code@p
                                               | model service/auto:nitro                          |
                                                 because quality member; sort throughput
fast: who begins first, of all members         | q begins in 0.2 s; p begins in 0.9 s              | flag@q, flag@p, tiny@p, code@p
                                               | model service/auto:fast                           |
                                                 because quality member; sort latency
floor with a minimum                           | model service/auto:floor[300k]                    | code@p, flag@p, flag@q
the minimum first                              | model service/auto[300k]:floor                    | code@p, flag@p, flag@q
nitro with a minimum                           | q makes 200 tok/s; p makes 90 tok/s               | flag@q, flag@p, code@p
                                               | model service/auto[300k]:nitro                    |
fast with a minimum                            | q begins in 0.2 s; p begins in 0.9 s              | flag@q, flag@p, code@p
                                               | model service/auto:fast[300k]                     |
a minimum that nobody holds                    | model service/auto[2m]                            | nobody: min_context
two minima that contradict each other          | model service/auto[1m][500k]                      | refused: model
                                                 because bad_request
free: the members of service/free              | model service/auto:free                           | gift:free@r
free with another suffix, either way round     | model service/auto:free:floor                     | gift:free@r
                                               | key may use gift:free                             |
and the other                                  | model service/auto:nitro:free                     | gift:free@r
free with a minimum                            | model service/auto:free[16k]                      | gift:free@r
free with one that no free member holds        | model service/auto[64k]:free                      | nobody: min_context
free: a fallback that costs is named           | model service/auto:free then code                 | gift:free@r, code@p
other routers have no free copy                | model service/free:free                           | refused: model
                                                 because model_unavailable
the suffix of the first model counts           | model code:floor then flag                        | code@p, flag@p, flag@q
`,
);

describeRoutingTable(
  "sessions",
  `
catalog
  large: dear 3 USD
  large: cheap 1 USD
  large: middle 2 USD
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
a session moves from a deprioritized provider  | session was at large@dear; dear is deprioritized | cheap, middle, dear (moved)
and from one that is left out                  | session was at large@dear; dear is quarantined | cheap, middle (moved)

catalog
  flag: p 10 USD, thinks, sees images, holds 400k
  flag: q 12 USD, thinks, sees images, holds 400k
  code: p 4 USD, thinks, holds 1000k
  tiny: p 1 USD, holds 16k
  gift:free: r 0 USD, holds 32k
  deal: r 2 USD, holds 32k
  service/auto: flag; tiny, code
  service/free: ; gift:free, deal
a session stays with its member                | session was at code@p for service/auto            | code@p, flag@p, flag@q, tiny@p
                                               | model service/auto                                |
                                                 because served the session last; member; weighted by price
`,
);
