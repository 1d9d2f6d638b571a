import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { AddStatement, CommitUnit } from "../../platform/storage/commit-queue.ts";
import { isOutage, type AttemptRecord, type GenerationRecord } from "../generation-record.ts";
import { allTransfersSql } from "../../platform/storage/migrations/2026-11-26-closed-months.ts";
import { readUnfolded, type UnfoldedSums } from "../../platform/storage/growths.ts";

/**
 * Sums of requests over one time bucket. Reasoning tokens are part of the completion, and cached
 * ones of the prompt.
 */
export interface UsageSums {
  /** Requests that have a generation record. */
  requests: number;
  /** The requests that ended without a whole answer, except where the client left. */
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

interface UsageRow extends UsageSums {
  workspace_id: string;
  key_id: string;
  model: string;
  provider: string;
  cost_nano: number | bigint;
}

/** Counters that grow with each record. Hours and days are counted from the epoch, in UTC. */
export interface UsageTables {
  usage_hours: UsageRow & { hour: number };
  usage_days: UsageRow & { day: number };
  /** The daily counters without providers, which need far fewer rows. */
  usage_key_days: Omit<UsageRow, "provider"> & { day: number };
  sender_days: {
    workspace_id: string;
    scope: string;
    subject: string;
    day: number;
    requests: number;
    cost_nano: number | bigint;
  };
  customer_days: {
    workspace_id: string;
    customer: string;
    day: number;
    model: string;
    requests: number;
    prompt_tokens: number;
    completion_tokens: number;
    cost_nano: number | bigint;
    price_nano: number | bigint;
  };
  /** The whole service: one row per hour. */
  network_hours: { hour: number; requests: number; tokens: number };
  network_days: UsageSums & {
    day: number;
    model: string;
    provider: string;
    cost_nano: number | bigint;
    /** Attempts at the provider, including failed ones. */
    attempts: number;
    /** Attempts that failed by the provider's own fault. */
    failures: number;
  };
  /** Answers that were delivered and could not be charged. */
  uncollected_days: {
    day: number;
    workspace_id: string;
    model: string;
    requests: number;
    uncollected_nano: number | bigint;
  };
  /** Answers in which a provider passed the output cap that it was sent. */
  passed_cap_days: {
    day: number;
    provider: string;
    requests: number;
    tokens: number;
    cost_nano: number | bigint;
  };
}

const sumColumns = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
] as const;

/** A request for which a provider was called, with all of its counters in one row. */
const usageAdd: AddStatement = {
  name: "usage",
  table: "usage_growths",
  keyColumns: ["workspace_id", "hour", "key_id", "model", "provider"],
  sumColumns: [...sumColumns, "attempts", "failures"],
  spreadsTo: ["usage_hours", "usage_days", "usage_key_days", "network_hours", "network_days"],
};
const usageHourAdd: AddStatement = {
  name: "usage-hour",
  table: "usage_hours",
  keyColumns: ["workspace_id", "hour", "key_id", "model", "provider"],
  sumColumns,
};
const usageDayAdd: AddStatement = {
  name: "usage-day",
  table: "usage_days",
  keyColumns: ["workspace_id", "day", "key_id", "model", "provider"],
  sumColumns,
};
const usageKeyDayAdd: AddStatement = {
  name: "usage-key-day",
  table: "usage_key_days",
  keyColumns: ["workspace_id", "day", "key_id", "model"],
  sumColumns,
};
const networkDayAdd: AddStatement = {
  name: "network-day",
  table: "network_days",
  keyColumns: ["day", "model", "provider"],
  sumColumns: [...sumColumns, "attempts", "failures"],
};
const uncollectedDayAdd: AddStatement = {
  name: "uncollected-day",
  table: "uncollected_days",
  keyColumns: ["day", "workspace_id", "model"],
  sumColumns: ["requests", "uncollected_nano"],
};
const passedCapDayAdd: AddStatement = {
  name: "passed-cap-day",
  table: "passed_cap_days",
  keyColumns: ["day", "provider"],
  sumColumns: ["requests", "tokens", "cost_nano"],
};

/** What requests cost by a customer or a tag that a budget counts. */
const senderDayAdd: AddStatement = {
  name: "sender-day",
  table: "sender_days",
  keyColumns: ["workspace_id", "scope", "subject", "day"],
  sumColumns: ["requests", "cost_nano"],
};

/** Returns the counters of the customer and the tags of a request, where budgets count them. */
export const senderAdds = (
  record: Pick<GenerationRecord, "workspaceId" | "createdAtMs" | "costNanoUsd">,
  senders: readonly { scope: string; subject: string }[],
): CommitUnit["adds"] =>
  senders.map(({ scope, subject }) => ({
    statement: senderDayAdd,
    key: [record.workspaceId, scope, subject, Math.floor(record.createdAtMs / dayMs)],
    sums: [1, Number(record.costNanoUsd)],
  }));

/** Returns what a sum counts beside the requests that it will see. */
export const senderDayBegin = ({
  workspaceId,
  scope,
  subject,
  atMs,
  costNano,
}: {
  workspaceId: string;
  scope: string;
  subject: string;
  atMs: number;
  costNano: bigint;
}): CommitUnit["adds"][number] => ({
  statement: senderDayAdd,
  key: [workspaceId, scope, subject, Math.floor(atMs / dayMs)],
  sums: [0, Number(costNano)],
});

/** What customers used, by day and model, with the cost of it and its price. */
const customerDayAdd: AddStatement = {
  name: "customer-day",
  table: "customer_days",
  keyColumns: ["workspace_id", "customer", "day", "model"],
  sumColumns: ["requests", "prompt_tokens", "completion_tokens", "cost_nano", "price_nano"],
};

/** Returns the counters of the customer of a request, where a plan counts it. */
export const customerAdds = (
  record: Pick<
    GenerationRecord,
    | "workspaceId"
    | "model"
    | "createdAtMs"
    | "promptTokens"
    | "completionTokens"
    | "costNanoUsd"
    | "detail"
  >,
): CommitUnit["adds"] => {
  const { customer, customerPriceNanoUsd } = record.detail;
  if (customer === undefined) return [];
  const day = Math.floor(record.createdAtMs / dayMs);
  return [
    {
      statement: customerDayAdd,
      key: [record.workspaceId, customer, day, record.model],
      sums: [
        1,
        record.promptTokens,
        record.completionTokens,
        Number(record.costNanoUsd),
        Number(customerPriceNanoUsd ?? 0),
      ],
    },
  ];
};

/** Every counter that grows with a record. */
export const usageAddStatements: readonly AddStatement[] = [
  usageAdd,
  usageHourAdd,
  usageDayAdd,
  usageKeyDayAdd,
  networkDayAdd,
  uncollectedDayAdd,
  passedCapDayAdd,
  senderDayAdd,
  customerDayAdd,
];

type Adds = CommitUnit["adds"][number][];

/**
 * Returns the counters of a request, to be committed together with its record so that they grow
 * exactly once.
 */
export function usageAdds(record: GenerationRecord): CommitUnit["adds"] {
  const { usage, uncollectedNanoUsd } = record.detail;
  const { workspaceId, keyId, model, provider, attempts, createdAtMs, status } = record;
  const sums = [
    1,
    status === "cut" || status === "failed" ? 1 : 0,
    record.promptTokens,
    record.completionTokens,
    usage["cacheReadTokens"] ?? 0,
    usage["reasoningTokens"] ?? 0,
    Number(record.costNanoUsd),
  ];
  const last = attempts.at(-1);
  if (last === undefined) return addsWithoutProvider(record, sums);
  sums.push(...triesOf(last));
  const key = [workspaceId, Math.floor(createdAtMs / hourMs), keyId, model, provider];
  const adds: Adds = [{ statement: usageAdd, key, sums }];
  if (uncollectedNanoUsd !== undefined) adds.push(uncollectedOf(record, uncollectedNanoUsd));
  const { tokensPastCap, nanoUsdPastCap } = record.detail;
  if (tokensPastCap !== undefined)
    adds.push({
      statement: passedCapDayAdd,
      key: [dayOf(record), provider],
      sums: [1, tokensPastCap, Number(nanoUsdPastCap ?? 0)],
    });
  for (let index = 0; index < attempts.length - 1; index += 1)
    adds.push(failedTryOf(record, attempts[index] as AttemptRecord));
  return adds;
}

const dayOf = ({ createdAtMs }: GenerationRecord): number => Math.floor(createdAtMs / dayMs);

/**
 * Returns the counters of a request that reached no provider or was answered from a cache. It is
 * not part of the figures of the whole service, which are those of its providers.
 */
function addsWithoutProvider(record: GenerationRecord, sums: number[]): Adds {
  const { workspaceId, keyId, model, provider, createdAtMs, detail } = record;
  const hour = Math.floor(createdAtMs / hourMs);
  const day = dayOf(record);
  const adds: Adds = [
    { statement: usageHourAdd, key: [workspaceId, hour, keyId, model, provider], sums },
    { statement: usageDayAdd, key: [workspaceId, day, keyId, model, provider], sums },
    { statement: usageKeyDayAdd, key: [workspaceId, day, keyId, model], sums },
  ];
  if (detail.uncollectedNanoUsd !== undefined)
    adds.push(uncollectedOf(record, detail.uncollectedNanoUsd));
  return adds;
}

const uncollectedOf = (record: GenerationRecord, uncollectedNanoUsd: string): Adds[number] => ({
  statement: uncollectedDayAdd,
  key: [dayOf(record), record.workspaceId, record.model],
  sums: [1, Number(uncollectedNanoUsd)],
});

/** Returns the counters of an attempt before the last one, under its own provider. */
const failedTryOf = (record: GenerationRecord, attempt: AttemptRecord): Adds[number] => ({
  statement: networkDayAdd,
  key: [dayOf(record), attempt.model, attempt.provider],
  sums: [...sumColumns.map(() => 0), ...triesOf(attempt)],
});

/**
 * Counts one attempt as attempts and failures of its provider. A client that left says nothing
 * about the provider.
 */
const triesOf = (attempt: AttemptRecord): [attempts: number, failures: number] =>
  attempt.outcome === "cancelled" ? [0, 0] : [1, isOutage(attempt) ? 1 : 0];

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const figures = ["requests", "errors", "prompt_tokens", "completion_tokens", "cost_nano"] as const;
type Figures = Record<(typeof figures)[number], bigint>;
type FiguresByDay = Map<string, Figures>;

/** The usage tables with a row for each workspace, and how many of their buckets make a day. */
const tables = [
  { table: "usage_hours", bucket: "hour", perDay: dayMs / hourMs },
  { table: "usage_days", bucket: "day", perDay: 1 },
  { table: "usage_key_days", bucket: "day", perDay: 1 },
] as const;

const sumsSql = figures.map((name) => `sum(${name}) as ${name}`).join(", ");
const recordedSql = `select workspace_id, created_at_ms / ${dayMs} as day, count(*) as requests,
    sum(case when status in ('cut', 'failed') then 1 else 0 end) as errors, sum(prompt_tokens) as prompt_tokens,
    sum(completion_tokens) as completion_tokens, sum(cost_nano) as cost_nano
  from generations group by workspace_id, created_at_ms / ${dayMs}`;
const uncollectedSql = "select sum(uncollected_nano) as amount from uncollected_days";
const unpaidSql = (transfers: string): string =>
  `select sum(amount_nano) as amount from ${transfers} as unpaid where kind = 'uncollected'`;

/**
 * Returns where the sums of usage differ from the generation records, for days of a workspace whose
 * records all still exist. Requests that fail by the thousand are counted without a record, so the
 * counts may be higher, but the costs must not differ.
 */
export async function checkUsage(query: Query): Promise<string[]> {
  const unfolded = await readUnfolded(query);
  const recorded: FiguresByDay = new Map();
  const oldestDay = new Map<string, number>();
  for (const row of await query(recordedSql)) {
    const [workspaceId, day] = [String(row["workspace_id"]), Number(row["day"])];
    addFigures(recorded, nameOf(workspaceId, day), row);
    oldestDay.set(workspaceId, Math.min(day, oldestDay.get(workspaceId) ?? Infinity));
  }
  const problems: string[] = [];
  for (const { table, bucket, perDay } of tables) {
    const summed = await readSums(query, { table, bucket, perDay, unfolded });
    for (const [name, records] of recorded) {
      const [workspaceId = "", day] = name.split(" ");
      // Some records of the oldest day may have been deleted.
      if (Number(day) > (oldestDay.get(workspaceId) ?? 0))
        problems.push(...differences({ table, name, records, sums: summed.get(name) }));
    }
  }
  return [...problems, ...(await checkUncollected(query, unfolded))];
}

const nameOf = (workspaceId: string, day: number): string => `${workspaceId} ${day}`;

function addFigures(into: FiguresByDay, name: string, row: Record<string, unknown>): void {
  const known = into.get(name);
  const grown = figures.map((figure) => [
    figure,
    (known?.[figure] ?? 0n) + BigInt(String(row[figure] ?? 0)),
  ]);
  into.set(name, Object.fromEntries(grown) as Figures);
}

async function readSums(
  query: Query,
  {
    table,
    bucket,
    perDay,
    unfolded,
  }: { table: string; bucket: string; perDay: number; unfolded: UnfoldedSums },
): Promise<FiguresByDay> {
  const summed: FiguresByDay = new Map();
  const rows = await query(
    `select workspace_id, ${bucket} / ${perDay} as day, ${sumsSql} from ${table} group by workspace_id, ${bucket} / ${perDay}`,
  );
  for (const row of rows)
    addFigures(summed, nameOf(String(row["workspace_id"]), Number(row["day"])), row);
  for (const row of unfolded(table)) {
    const day = Math.floor(Number(row[bucket]) / perDay);
    addFigures(summed, nameOf(String(row["workspace_id"]), day), row);
  }
  for (const row of unfolded(usageAdd.table)) {
    const day = Math.floor(Number(row["hour"]) / (dayMs / hourMs));
    addFigures(summed, nameOf(String(row["workspace_id"]), day), row);
  }
  return summed;
}

function differences({
  table,
  name,
  records,
  sums,
}: {
  table: string;
  name: string;
  records: Figures;
  sums: Figures | undefined;
}): string[] {
  return figures.flatMap((figure) => {
    const sum = sums?.[figure] ?? 0n;
    const isRight = figure === "cost_nano" ? sum === records[figure] : sum >= records[figure];
    if (isRight) return [];
    const [workspaceId = "", day] = name.split(" ");
    const date = new Date(Number(day) * dayMs).toISOString().slice(0, 10);
    return [
      `usage: ${figure} of ${workspaceId} on ${date} are ${sum} in ${table}, its records add up to ${records[figure]}`,
    ];
  });
}

async function checkUncollected(query: Query, unfolded: UnfoldedSums): Promise<string[]> {
  const [counted, booked] = await Promise.all(
    [uncollectedSql, unpaidSql(await allTransfersSql(query))].map(async (text) =>
      BigInt(String((await query(text))[0]?.["amount"] ?? 0)),
    ),
  );
  const sum = unfolded("uncollected_days").reduce(
    (total, row) => total + BigInt(String(row["uncollected_nano"] ?? 0)),
    counted ?? 0n,
  );
  return sum === booked
    ? []
    : [`usage: ${sum} are counted as uncollected, the transfers add up to ${booked}`];
}
