import { describeRoutingTable } from "../../../test/support/describe-routing-table.ts";

/**
 * The contract's rules of the `provider` object as tables; each row is planned as a request on
 * chat, messages and responses. A block begins with its catalog, `model: provider price`: USD for a
 * million tokens in and a million out, or `in/out`. Then a row for each case: what it shows | what
 * is so at present, and what the request says, in the words of its `provider` object or in plain
 * ones | who is tried in which order. Where there are several models, that is `model@provider`. A
 * line with `because` tells why the first one is first. The draw always falls on the cheapest.
 */
describeRoutingTable(
  "routing rules",
  `
catalog
  large: dear 3 USD
  large: cheap 1 USD
  large: middle 2 USD
rule 1: drawn by price, the rest by price      |                                              | cheap, middle, dear
                                                 because weighted by price
an outage within 30 seconds comes last         | cheap is out                                 | middle, dear, cheap
                                                 because weighted by price
all with an outage: tried by price             | cheap is out; dear is out; middle is out     | cheap, middle, dear
                                                 because outage in the last 30 seconds
an outage of only this model counts            | cheap is out for large                       | middle, dear, cheap
an outage of another model does not count      | cheap is out for small                       | cheap, middle, dear
rule 2: order overrides outages                | middle is out; order: [middle, dear]         | middle, dear, cheap
                                                 because order
order, the rest by price                       | order: [dear]                                | dear, cheap, middle
rule 2: sort ignores outages                   | cheap is out; sort: price                    | cheap, middle, dear
                                                 because sort price
rule 5: price                                  | sort: price                                  | cheap, middle, dear
cost is an alias of price                      | sort: cost                                   | cheap, middle, dear
sort as an object                              | sort: {by: price}                            | cheap, middle, dear
sort latency: lowest median, unknown last      | dear begins in 0.2 s                         | dear, cheap, middle
                                               | cheap begins in 0.1 0.9 0.9 s; sort: latency |
                                                 because sort latency
ttft is an alias of latency                    | dear begins in 0.2 s; sort: ttft             | dear, cheap, middle
sort throughput: highest median, unknown last  | dear makes 90 tok/s                          | middle, dear, cheap
                                               | middle makes 20 300 300 tok/s                |
                                               | sort: throughput                             |
                                                 because sort throughput
tps is an alias of throughput                  | dear makes 90 tok/s; sort: {by: tps}         | dear, cheap, middle
rule 7: slugs or display names, in any case    | order: [MIDDLE INC, Dear]                    | middle, dear, cheap
only                                           | only: [dear, Cheap Inc]                      | cheap, dear
only an unknown provider                       | only: [nobody]                               | nobody: only
ignore                                         | ignore: [cheap]                              | middle, dear
no fallbacks: only the top candidate           | allow_fallbacks: false                       | cheap
no fallbacks with an order                     | order: [dear]; allow_fallbacks: false        | dear
no fallbacks: the order's first that serves    | order: [nobody, dear]                        | dear
                                               | allow_fallbacks: false                       |
no fallbacks: nobody beside the order          | order: [nobody]; allow_fallbacks: false      | nobody: order
an empty order rules nobody out                | order: []; allow_fallbacks: false            | cheap
a header forces a backend                      | header names dear                            | dear
a header's order overrides the provider object | header names dear then cheap; only: [middle] | dear, cheap
max_price excludes                             | max_price: {prompt: "2"}                     | cheap, middle
max_price that no route meets                  | max_price: {completion: "0.5"}               | nobody: max_price
rule 4: a missed preference comes last         | cheap begins in 2 s                          | middle, dear, cheap
                                               | preferred_max_latency: 1                     |
                                                 because weighted by price
a met preference keeps its place               | cheap begins in 0.5 s                        | cheap, middle, dear
                                               | preferred_max_latency: 1                     |
unknown latency misses no preference           | preferred_max_latency: 0.001                 | cheap, middle, dear
all miss the preference: drawn by price        | cheap begins in 2 s; middle begins in 2 s    | cheap, middle, dear
                                               | dear begins in 2 s; preferred_max_latency: 1 |
                                                 because misses preferred_max_latency
a number applies to the median                 | cheap begins in 0.1 0.1 9 s                  | cheap, middle, dear
                                               | preferred_max_latency: 1                     |
an object: every cutoff must be met            | cheap begins in 0.1 0.1 9 s                  | middle, dear, cheap
                                               | preferred_max_latency: {p50: 1, p90: 1}      |
null is no cutoff                              | cheap begins in 0.1 0.1 9 s                  | cheap, middle, dear
                                               | preferred_max_latency: {p50: 1, p90: null}   |
p75 of three samples is the third              | cheap begins in 0.1 0.1 9 s                  | middle, dear, cheap
                                               | preferred_max_latency: {p75: 1}              |
p99                                            | cheap begins in 0.1 0.1 9 s                  | cheap, middle, dear
                                               | preferred_max_latency: {p99: 10}             |
throughput: p90 is met by nine of ten          | cheap makes 9 50 50 tok/s                    | middle, dear, cheap
                                               | preferred_min_throughput: {p50: 40, p90: 40} |
a throughput number applies to the median      | cheap makes 9 50 50 tok/s                    | cheap, middle, dear
                                               | preferred_min_throughput: 40                 |
a missed preference comes before an outage     | cheap begins in 2 s; dear is out             | middle, cheap, dear
                                               | preferred_max_latency: 1                     |
a missed preference keeps an order             | dear begins in 2 s; order: [dear, middle]    | dear, middle, cheap
                                               | preferred_max_latency: 1                     |
                                                 because order
a missed preference changes a sort             | cheap begins in 2 s; sort: price             | middle, dear, cheap
                                               | preferred_max_latency: 1                     |
                                                 because sort price
an unknown sort                                | sort: vibes                                  | refused: provider.sort
                                                 because bad_request
an unknown percentile                          | preferred_max_latency: {p95: 1}              | refused: provider.preferred_max_latency.p95
a cutoff that is not a number                  | preferred_max_latency: {p90: soon}           | refused: provider.preferred_max_latency.p90
an invalid price                               | max_price: {prompt: cheap}                   | refused: provider.max_price.prompt
an unknown provider in the header              | header names nobody                          | refused: X-Service-Provider
                                                 because unknown_provider
deprioritized: tried last                      | cheap is deprioritized                       | middle, dear, cheap
                                                 because weighted by price
deprioritized and in order: kept               | cheap is deprioritized; order: [cheap]       | cheap, middle, dear
                                                 because order
deprioritized and first by sort: kept          | cheap is deprioritized; sort: price          | cheap, middle, dear
quarantined: not tried                         | cheap is quarantined                         | middle, dear
quarantined and in order: not tried            | cheap is quarantined; order: [cheap, dear]   | dear, middle
                                                 because order
excluded: not tried                            | cheap is excluded; sort: price               | middle, dear
over its budget: not tried                     | cheap is over its budget                     | middle, dear
all quarantined: tried anyway                  | cheap is quarantined; middle is quarantined  | cheap, middle, dear
                                               | dear is excluded                             |
over its budget: not tried even then           | cheap is over its budget                     | middle, dear
                                               | middle is quarantined; dear is quarantined   |
all over their budget: no candidate            | cheap is over its budget                     | nobody: budget_exhausted
                                               | only: [cheap]                                |
a workspace blocks providers                   | workspace blocks dear and cheap              | middle
ignore of preset and request: union            | preset says ignore: [dear]; ignore: [cheap]  | middle
only of preset and request: intersection       | preset says only: [DEAR Inc, middle]         | dear
                                               | only: [dear, cheap]                          |
only of preset and request: none in both       | preset says only: [dear]; only: [cheap]      | nobody: only
order: the request's before the preset's       | preset says order: [middle]; order: [dear]   | dear, middle, cheap
a preset's sort, if the request has none       | preset says sort: latency; dear begins in 1 s | dear, cheap, middle

catalog
  mixed: a 1 USD, zdr, no tools, int4, holds 8k
  mixed: b 2 USD, collects nothing, writes 1k, fp8, holds 32k
  mixed: c 3 USD, distillable, bf16, holds 128k, 9 USD above 100k
tools: only routes with tools                | tools                                    | b, c
a format: routes that declare it first       | JSON                                     | b, c, a
                                               because weighted by price
a format keeps an order                      | JSON; order: [a]                         | a, b, c
                                               because order
a format keeps an order without fallbacks    | JSON; order: [a]; allow_fallbacks: false | a
a format keeps the order of a preset         | JSON; preset says order: [a]             | a, b, c
a format keeps the order of a header         | JSON; header names a then c              | a, c
a format keeps a sort                        | JSON; sort: price                        | a, b, c
max_tokens on chat: only long outputs        | on chat; 2k tokens out                   | a, c
max_tokens elsewhere: short outputs last     | on messages and responses; 2k tokens out | a, c, b
                                               because weighted by price
short outputs last with a sort, too          | on messages and responses; 2k tokens out | a, c, b
                                               | sort: price                              |
short outputs keep an order                  | on messages and responses; 2k tokens out | b, a, c
                                               | order: [b]                               |
a small max_tokens changes nothing           | on messages and responses; 1k tokens out | a, b, c
min_context                                  | min_context: 32000                       | b, c
zdr                                          | zdr: true                                | a
                                               because only route
data_collection deny accepts zdr             | data_collection: deny                    | a, b
distillable text                             | enforce_distillable_text: true           | c
quantizations, in any case                   | quantizations: [FP8, int4]               | a, b
exacto: higher precision first               | sort: exacto                             | c, b, a
                                               because sort exacto
exacto as a suffix                           | model mixed:exacto                       | c, b, a
require_params                               | require_params: [tools]                  | b, c
long input has the price of its tier         | 120k tokens in; max_price: {prompt: "3"} | a, b
short input has the base price               | 5k tokens in; max_price: {prompt: "3"}   | a, b, c
no candidate: the rule of the last one       | zdr: true; tools                         | nobody: tools
min_context beside the provider object      | beside it min_context: 32000             | b, c
the higher min_context counts, of a preset  | preset says min_context: 100000          | c
                                            | min_context: 32000                       |
require_params of preset and request: union | preset says require_params: [tools]      | b, c
                                            | require_params: [temperature]            |
require_params beside the provider object   | beside it require_params: [tools]        | b, c
require_parameters: what the request sets   | require_parameters: true; JSON           | b, c
a parameter that all routes declare         | require_parameters: true; temperature    | a, b, c
data_collection: allow is the default       | data_collection: allow                   | a, b, c
a workspace that requires zdr               | workspace demands zdr                    | a
a request cannot undo the workspace's zdr   | workspace demands zdr; zdr: false        | a
a quantization that no route has            | quantizations: [fp4]                     | nobody: quantizations

catalog
  large: a 1 USD, writes 1k
  large: b 2 USD, writes 4k
  large: c 3 USD, writes 4k
max_tokens above all: longest outputs first | on messages and responses; 8k tokens out | b, c, a
                                              because weighted by price
max_tokens above all on chat: none          | on chat; 8k tokens out                   | nobody: max_tokens

catalog
  large: a 5 USD
  large: b 6 USD
  small: c 1 USD
  small: a 2 USD
rule 3: the first model's providers first | model large then small; sort: price                | large@a, large@b, small@c, small@a
rule 3 without a sort                     | a is out; model large then small                   | large@b, large@a, small@c, small@a
partition none: all together              | model large then small                             | small@c, small@a, large@a, large@b
                                          | sort: {by: price, partition: none}                 |
a key that may not use a model            | model large then small; key may use small          | refused: model
                                            because forbidden
providers of both models, by name         | model large then small; only: [a]                  | large@a, small@a
no fallbacks: none to another model       | model large then small; allow_fallbacks: false     | large@a
partition model is the default            | model large then small                             | large@a, large@b, small@c, small@a
                                          | sort: {by: price, partition: model}                |
max_price applies to all models           | model large then small; max_price: {prompt: "5"}   | large@a, small@c, small@a
a session applies to the first model      | session was at small@a for acme/large              | large@a, large@b, small@c, small@a (moved)
                                          | model large then small                             |
`,
);
