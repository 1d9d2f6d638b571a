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
no miss changes an order                       | dear begins in 2 s; order: [dear, middle]    | dear, middle, cheap
                                               | preferred_max_latency: 1                     |
                                                 because order
but it changes what a sort ordered             | cheap begins in 2 s; sort: price             | middle, dear, cheap
                                               | preferred_max_latency: 1                     |
                                                 because sort price
nobody knows the sort                          | sort: vibes                                  | refused: provider.sort
                                                 because bad_request
nobody knows the percentile                    | preferred_max_latency: {p95: 1}              | refused: provider.preferred_max_latency.p95
a cutoff that is no number                     | preferred_max_latency: {p90: soon}           | refused: provider.preferred_max_latency.p90
a price that is none                           | max_price: {prompt: cheap}                   | refused: provider.max_price.prompt
a stranger in the header is a mistake          | header names nobody                          | refused: X-Service-Provider
                                                 because unknown_provider
deprioritized: asked last                      | cheap is deprioritized                       | middle, dear, cheap
                                                 because weighted by price
but where an order names it                    | cheap is deprioritized; order: [cheap]       | cheap, middle, dear
                                                 because order
and where a sort finds it best                 | cheap is deprioritized; sort: price          | cheap, middle, dear
quarantined: not asked                         | cheap is quarantined                         | middle, dear
not even where an order names it               | cheap is quarantined; order: [cheap, dear]   | dear, middle
                                                 because order
excluded: not asked                            | cheap is excluded; sort: price               | middle, dear
over its budget: not asked                     | cheap is over its budget                     | middle, dear
all in quarantine: asked all the same          | cheap is quarantined; middle is quarantined  | cheap, middle, dear
                                               | dear is excluded                             |
a spent budget holds, whoever else is left     | cheap is over its budget                     | middle, dear
                                               | middle is quarantined; dear is quarantined   |
all budgets spent: nobody                      | cheap is over its budget                     | nobody: budget_exhausted
                                               | only: [cheap]                                |
a workspace that blocks a provider             | workspace blocks dear and cheap              | middle
lists of preset and request: ignore, either    | preset says ignore: [dear]; ignore: [cheap]  | middle
only, both; by slug or by display name         | preset says only: [DEAR Inc, middle]         | dear
                                               | only: [dear, cheap]                          |
only, with nothing in both                     | preset says only: [dear]; only: [cheap]      | nobody: only
order: the request's first                     | preset says order: [middle]; order: [dear]   | dear, middle, cheap
a preset's sort, unless the request has one    | preset says sort: latency; dear begins in 1 s | dear, cheap, middle

catalog
  mixed: a 1 USD, zdr, no tools, int4, holds 8k
  mixed: b 2 USD, collects nothing, writes 1k, fp8, holds 32k
  mixed: c 3 USD, distillable, bf16, holds 128k, 9 USD above 100k
tools: who takes them                        | tools                                    | b, c
a format: those who declare it first         | JSON                                     | b, c, a
                                               because weighted by price
a format changes no order                    | JSON; order: [a]                         | a, b, c
                                               because order
nor what is left of one                      | JSON; order: [a]; allow_fallbacks: false | a
nor the order of a preset                    | JSON; preset says order: [a]             | a, b, c
nor that of a header                         | JSON; header names a then c              | a, c
nor a sort                                   | JSON; sort: price                        | a, b, c
max_tokens: who writes that much             | on chat; 2k tokens out                   | a, c
elsewhere who writes less comes last         | on messages and responses; 2k tokens out | a, c, b
                                               because weighted by price
also where a measure sorts them              | on messages and responses; 2k tokens out | a, c, b
                                               | sort: price                              |
but never across an order                    | on messages and responses; 2k tokens out | b, a, c
                                               | order: [b]                               |
a short one moves nobody                     | on messages and responses; 1k tokens out | a, b, c
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
min_context beside the provider object      | beside it min_context: 32000             | b, c
the higher min_context counts, of a preset  | preset says min_context: 100000          | c
                                            | min_context: 32000                       |
require_params of preset and request        | preset says require_params: [tools]      | b, c
                                            | require_params: [temperature]            |
require_params beside the provider object   | beside it require_params: [tools]        | b, c
require_parameters: what the request sets   | require_parameters: true; JSON           | b, c
a parameter that all of them declare        | require_parameters: true; temperature    | a, b, c
data_collection: allow is the default       | data_collection: allow                   | a, b, c
a workspace that demands zdr                | workspace demands zdr                    | a
which no request takes back                 | workspace demands zdr; zdr: false        | a
a quantization that nobody has              | quantizations: [fp4]                     | nobody: quantizations

catalog
  large: a 1 USD, writes 1k
  large: b 2 USD, writes 4k
  large: c 3 USD, writes 4k
what nobody writes: who writes most first   | on messages and responses; 8k tokens out | b, c, a
                                              because weighted by price
on chat nobody is asked                     | on chat; 8k tokens out                   | nobody: max_tokens

catalog
  large: a 5 USD
  large: b 6 USD
  small: c 1 USD
  small: a 2 USD
rule 3: the first model's providers first | model large then small; sort: price                | large@a, large@b, small@c, small@a
without a sort, too                       | a is out; model large then small                   | large@b, large@a, small@c, small@a
partition none: all together              | model large then small                             | small@c, small@a, large@a, large@b
                                          | sort: {by: price, partition: none}                 |
a key that may not use a model            | model large then small; key may use small          | refused: model
                                            because forbidden
providers of both models, by name         | model large then small; only: [a]                  | large@a, small@a
no fallbacks: not to a model, either      | model large then small; allow_fallbacks: false     | large@a
partition model is the default            | model large then small                             | large@a, large@b, small@c, small@a
                                          | sort: {by: price, partition: model}                |
max_price takes out of all of them        | model large then small; max_price: {prompt: "5"}   | large@a, small@c, small@a
a session of the first model only         | session was at small@a for acme/large              | large@a, large@b, small@c, small@a (moved)
                                          | model large then small                             |
`,
);
