import { Database } from "bun:sqlite";
import { dayMs } from "../src/platform/kernel/clock.ts";

/** What is generated, and for whom. */
export interface RowPlan {
  rows: number;
  /** The workspace that is asked about; it has two rows in five, the others share the rest. */
  workspaceId: string;
  nowMs: number;
  days: number;
}

const otherWorkspaces = 19;
/** Each key asks four of the models, each of which three of the providers serve. */
export const spread = { keys: 30, models: 40, providers: 12 } as const;

/** A number that looks drawn, from the row's own; the same for every run. */
const drawn = (salt: number, below: number): string =>
  `(((i * 2654435761 + ${salt * 97_003}) >> 9) & 8388607) % ${below}`;

/** What the settlement of a usual request writes, and as much text. */
const detail = `'{"usage":{"inputTokens":' || (prompt - prompt / 4) || ',"cacheReadTokens":' || (prompt / 4)
  || ',"outputTokens":' || completion
  || ',"reasoningTokens":' || (completion / 5) || '},"priceVersion":"' || model || '@2026-07-02","price":{"inputTokens":"0.5",'
  || '"outputTokens":"1.5"},"holdNanoUsd":"6200000","routing":{"order":["' || provider || ' ' || model
  || ': weighted by price","provider-11 ' || model || ': fallback by price"]}}'`;

const generationsOf = ({ workspaceId, rows, nowMs, days }: RowPlan): string => `
  insert into generations
  with recursive n(i) as (select 0 union all select i + 1 from n where i < ${rows - 1}),
  drawn as (
    select i, ${nowMs - days * dayMs} + i * ${days * dayMs} / ${rows} as at, ${drawn(1, spread.keys)} as key,
      200 + ${drawn(2, 4_000)} as prompt, 20 + ${drawn(3, 800)} as completion, ${drawn(4, 100)} as luck from n
  ),
  named as (
    select *, 'maker/model-' || ((key * 3 + ${drawn(5, 4)}) % ${spread.models}) as model from drawn
  ),
  placed as (
    select *, 'provider-' || ((key + ${drawn(6, 3)}) % ${spread.providers}) as provider from named
  )
  select 'gen_' || printf('%012x', at) || printf('%020x', i), at, '${workspaceId}', 'key_' || key, 'chat', model, model, provider,
    substr(model, 7), null, case when luck = 0 then 'cut' when luck = 1 then 'cancelled' else 'completed' end,
    case when luck = 0 then null else 'stop' end, i % 2, prompt, completion, prompt * 500 + completion * 1500, 400 + completion * 8,
    case when i % 2 = 1 then 300 else null end, ${detail}
  from placed`;

/** The counters of a workspace's rows, as `usageAdds` has them for each. */
const hoursOf = ({ workspaceId }: RowPlan): string => `
  insert into usage_hours
  select workspace_id, created_at_ms / 3600000, key_id, model, provider, count(*), sum(status = 'cut'), sum(prompt_tokens),
    sum(completion_tokens), sum(prompt_tokens / 4), sum(completion_tokens / 5), sum(cost_nano)
  from generations where workspace_id = '${workspaceId}' group by 2, 3, 4, 5`;

const sums = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
]
  .map((name) => `sum(${name})`)
  .join(", ");

/**
 * Fills the tables of a gateway that is not running: generation rows, and their counters summed up
 * from them.
 */
export function fillTables(path: string, plan: RowPlan): void {
  const database = new Database(path);
  for (const pragma of [
    "busy_timeout = 10000",
    "journal_mode = off",
    "synchronous = off",
    "cache_size = -400000",
    "temp_store = memory",
  ]) {
    database.run(`pragma ${pragma}`);
  }
  const own = Math.floor((plan.rows * 2) / 5);
  const others = Math.floor((plan.rows - own) / otherWorkspaces);
  const shares = [
    { ...plan, rows: plan.rows - others * otherWorkspaces },
    ...Array.from({ length: otherWorkspaces }, (_, index) => ({
      ...plan,
      rows: others,
      workspaceId: `ws_other_${index}`,
    })),
  ];
  for (const share of shares) {
    database.run(generationsOf(share));
    database.run(hoursOf(share));
  }
  for (const [table, selected] of [
    [
      "usage_days",
      `workspace_id, hour / 24, key_id, model, provider, ${sums} from usage_hours group by 1, 2, 3, 4, 5`,
    ],
    [
      "usage_key_days",
      `workspace_id, day, key_id, model, ${sums} from usage_days group by 1, 2, 3, 4`,
    ],
    [
      "network_hours",
      "hour, sum(requests), sum(prompt_tokens + completion_tokens) from usage_hours group by 1",
    ],
    [
      "network_days",
      `day, model, provider, ${sums}, sum(requests), sum(errors) from usage_days group by 1, 2, 3`,
    ],
  ])
    database.run(`insert into ${table} select ${selected}`);
  database.run("pragma optimize");
  database.close();
}

/** How many rows a table has. */
export function countRows(path: string, table: string): number {
  const database = new Database(path, { readonly: true });
  const row = database.query(`select count(*) as count from ${table}`).get() as { count: number };
  database.close();
  return row.count;
}
