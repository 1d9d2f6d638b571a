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
floor in any letter case                       | cheap is out; model LARGE:Floor              | cheap, middle, dear
                                                 because sort price
fast                                           | dear begins in 0.2 s; model large:fast       | dear, cheap, middle
                                                 because sort latency
the provider object overrides a suffix         | dear begins in 0.2 s; model large:fast       | cheap, middle, dear
                                               | sort: price                                  |
contradictory suffixes                         | model large:fast:floor                       | refused: model
                                                 because bad_request
a context suffix is only for routers           | model large[1m]                              | refused: model
                                                 because model_unavailable
no free copy: no paid fallback                 | model large:free                             | refused: model
                                                 because model_unavailable
a suffix sorts the rest of an order            | model large:floor; order: [dear]             | dear, cheap, middle
                                                 because order
two equal suffixes                             | model large:floor:Floor                      | cheap, middle, dear
an unknown suffix is part of the id            | model large:turbo                            | refused: model
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
low effort: small members first                | model service/auto; effort low                    | tiny@p, code@p, flag@p, flag@q
                                                 because cheapest member, for a light request; weighted by price
low effort with tools: quality first           | model service/auto; effort low; tools             | flag@p, flag@q, tiny@p, code@p
low effort with long input: quality first      | model service/auto; effort low; 10k tokens in     | flag@p, flag@q, tiny@p, code@p
low effort with exacto: quality first          | model service/auto:exacto; effort low             | flag@p, flag@q, tiny@p, code@p
                                                 because quality member; sort exacto
images: only members with vision               | model service/auto; images                        | flag@p, flag@q
high effort: reasoning members first           | model service/auto; effort high                   | flag@p, flag@q, code@p, tiny@p
long input: short contexts last                | model service/auto; 200k tokens in                | flag@p, flag@q, code@p, tiny@p
a context suffix is a minimum                  | model service/auto[1m]                            | code@p
                                                 because member; only route
context and exacto suffix, any letter case     | model service/AUTO[300K]:Exacto                   | flag@p, flag@q, code@p
context and exacto suffix, reversed            | model service/auto:exacto[300k]                   | flag@p, flag@q, code@p
the higher minimum counts                      | model service/auto[16k]; min_context: 500000      | code@p
floor: the cheapest of all members             | model service/auto:floor                          | tiny@p, code@p, flag@p, flag@q
                                                 because member; sort price
order: the named provider first                | model service/auto; order: [q]                    | flag@q, flag@p, tiny@p, code@p
                                                 because quality member; order
an outage comes last for all members           | p is out; model service/auto                      | flag@q, flag@p, tiny@p, code@p
a key's model list narrows the pool            | model service/auto                                | code@p
                                               | key may use code and gift:free                    |
a key without any member                       | model service/auto; key may use deal              | refused: model
                                                 because forbidden
service/free: no paid member                   | model service/free                                | gift:free@r
service/free: no paid member as the only one   | model service/free; min_context: 64000            | nobody: min_context
a free id with a suffix                        | model gift:free:floor                             | gift:free@r
a member beside its router is tried once       | model service/auto then deal then code            | flag@p, flag@q, tiny@p, code@p, deal@r
nitro: fastest of all members first            | q makes 200 tok/s; p makes 90 tok/s               | flag@q, flag@p, tiny@p, code@p
                                               | model service/auto:nitro                          |
                                                 because quality member; sort throughput
fast: lowest latency of all members first      | q begins in 0.2 s; p begins in 0.9 s              | flag@q, flag@p, tiny@p, code@p
                                               | model service/auto:fast                           |
                                                 because quality member; sort latency
floor with a context suffix                    | model service/auto:floor[300k]                    | code@p, flag@p, flag@q
a context suffix before floor                  | model service/auto[300k]:floor                    | code@p, flag@p, flag@q
nitro with a context suffix                    | q makes 200 tok/s; p makes 90 tok/s               | flag@q, flag@p, code@p
                                               | model service/auto[300k]:nitro                    |
fast with a context suffix                     | q begins in 0.2 s; p begins in 0.9 s              | flag@q, flag@p, code@p
                                               | model service/auto:fast[300k]                     |
a context that no member has                   | model service/auto[2m]                            | nobody: min_context
contradictory context suffixes                 | model service/auto[1m][500k]                      | refused: model
                                                 because bad_request
free: the members of service/free              | model service/auto:free                           | gift:free@r
free before another suffix                     | model service/auto:free:floor                     | gift:free@r
                                               | key may use gift:free                             |
free after another suffix                      | model service/auto:nitro:free                     | gift:free@r
free with a context suffix                     | model service/auto:free[16k]                      | gift:free@r
free with a context that no member has         | model service/auto[64k]:free                      | nobody: min_context
free with a paid fallback                      | model service/auto:free then code                 | gift:free@r, code@p
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
a session stays at a more expensive provider   | session was at large@dear                    | dear, cheap, middle
                                                 because served the session last; fallback by price
a session moves from an outage                 | session was at large@dear; dear is out       | cheap, middle, dear (moved)
                                                 because weighted by price
a session moves from an ignored provider       | session was at large@dear; ignore: [dear]    | cheap, middle (moved)
a session moves to follow an order             | session was at large@dear; order: [middle]   | middle, cheap, dear (moved)
                                                 because order
a session stays through a sort                 | session was at large@dear; sort: price       | dear, cheap, middle
                                                 because served the session last; sort price
a session of another model is ignored          | session was at small@dear                    | cheap, middle, dear
a session moves from a deprioritized provider  | session was at large@dear; dear is deprioritized | cheap, middle, dear (moved)
a session moves from a quarantined provider    | session was at large@dear; dear is quarantined | cheap, middle (moved)

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
