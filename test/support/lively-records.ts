import { Database } from "bun:sqlite";
import { dayMs, hourMs } from "../../src/platform/kernel/clock.ts";

/** What a workspace is filled with. */
export interface LivelyPlan {
  rows: number;
  workspaceId: string;
  /** The ids of the keys that asked; the first ones ask the most. */
  keyIds: readonly string[];
  /** The teams of keys, by the keys' ids; keys of no team are left out. */
  teams?: ReadonlyMap<string, string>;
  nowMs: number;
  days: number;
}

/** A model with its prices in nano-USD a token, and the providers that serve it. */
const models = [
  {
    id: "acme/large",
    prompt: 5000,
    completion: 15_000,
    share: 34,
    providers: ["acme", "northwind"],
  },
  {
    id: "northwind/sonar-mini",
    prompt: 3000,
    completion: 9000,
    share: 24,
    providers: ["northwind", "contoso"],
  },
  { id: "contoso/coder", prompt: 4000, completion: 16_000, share: 17, providers: ["contoso"] },
  { id: "acme/small", prompt: 600, completion: 2400, share: 14, providers: ["acme", "northwind"] },
  { id: "fabrikam/vision", prompt: 7000, completion: 21_000, share: 8, providers: ["fabrikam"] },
  { id: "acme/embed", prompt: 200, completion: 0, share: 3, providers: ["acme"] },
] as const;
const apps = ["Night watch", "Support desk", "Code review", "Translation", undefined] as const;
const customers = ["customer-017", "customer-204", "customer-391", undefined] as const;
const failures = [
  { code: "upstream_error", status: 502 },
  { code: "upstream_timeout", status: 504 },
  { code: "upstream_rate_limited", status: 429 },
] as const;

/** Draws numbers from 0 to 1 that are the same in every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const pick = <Item>(items: readonly Item[], drawn: number): Item | undefined =>
  items[Math.floor(drawn * items.length)];

/**
 * How busy a moment is: working hours of working days most, nights and weekends least. Counted
 * back from now, so that the end is the middle of a working day at any time and day of the week.
 */
function busyness(ageMs: number): number {
  const hoursOld = Math.floor(ageMs / hourMs) % 24;
  const daysOld = Math.floor(ageMs / dayMs) % 7;
  return (daysOld === 3 || daysOld === 4 ? 0.3 : 1) * (hoursOld < 11 ? 1 : 0.25);
}

function drawnModel(drawn: number): (typeof models)[number] {
  let left = drawn * 100;
  return models.find(({ share }) => (left -= share) < 0) ?? models[0];
}

/** Returns the columns of one record, in the order of the table. */
function recordOf(index: number, atMs: number, plan: LivelyPlan, draw: () => number) {
  const model = drawnModel(draw());
  const provider = model.providers[draw() < 0.85 ? 0 : model.providers.length - 1] ?? "acme";
  const luck = draw();
  const failure = luck < 0.012 ? pick(failures, draw()) : undefined;
  const status = failure !== undefined ? "failed" : luck < 0.018 ? "cut" : "completed";
  const prompt = Math.round(200 + draw() ** 3 * 9_000);
  const completion =
    failure === undefined && model.completion > 0 ? Math.round(20 + draw() ** 2 * 1_600) : 0;
  const cached = draw() < 0.4 ? Math.floor(prompt * 0.6) : 0;
  const cost = failure === undefined ? prompt * model.prompt + completion * model.completion : 0;
  const latencyMs = Math.round(300 + draw() * 400 + completion * 7);
  const keyId = plan.keyIds[Math.floor(draw() ** 2 * plan.keyIds.length)] ?? plan.keyIds[0];
  const appTitle = pick(apps, draw());
  const customer = pick(customers, draw());
  const detail = {
    usage: { inputTokens: prompt - cached, cacheReadTokens: cached, outputTokens: completion },
    priceVersion: `${model.id}@2026-11-02`,
    price: {
      inputTokens: String(model.prompt / 1_000),
      outputTokens: String(model.completion / 1_000),
    },
    holdNanoUsd: String(cost * 2),
    appTitle,
    externalUser: customer,
    team: plan.teams?.get(keyId ?? ""),
    ...(customer !== undefined && {
      customer,
      customerPriceNanoUsd: String(Math.round(cost * 1.25)),
    }),
    sessionId: draw() < 0.3 ? `session-${Math.floor(draw() * 40)}` : undefined,
    error: failure,
    ...(failure === undefined
      ? {}
      : {
          attempts: [
            {
              provider,
              model: model.id,
              upstreamModel: model.id,
              status: failure.status,
              outcome: "failed",
              reason: "upstream_error",
              durationMs: latencyMs,
            },
          ],
        }),
  };
  const id = `gen_${atMs.toString(16).padStart(12, "0")}${index.toString(16).padStart(20, "0")}`;
  const streamed = draw() < 0.6 ? 1 : 0;
  return [
    ...[id, atMs, plan.workspaceId, keyId, "chat", model.id, model.id, provider, model.id],
    ...[null, status, status === "completed" ? "stop" : null, streamed, prompt, completion, cost],
    ...[latencyMs, streamed === 1 ? 150 + Math.round(draw() * 500) : null, JSON.stringify(detail)],
  ] as (string | number | null)[];
}

const hours = `insert into usage_hours
  select workspace_id, created_at_ms / ${hourMs}, key_id, model, provider, count(*),
    sum(status in ('cut', 'failed')), sum(prompt_tokens), sum(completion_tokens),
    sum(coalesce(json_extract(detail, '$.usage.cacheReadTokens'), 0)), 0, sum(cost_nano)
  from generations where workspace_id = ? group by 1, 2, 3, 4, 5`;
const sums = `sum(requests), sum(errors), sum(prompt_tokens), sum(completion_tokens),
  sum(cached_tokens), sum(reasoning_tokens), sum(cost_nano)`;
const rollups = [
  `usage_days select workspace_id, hour / 24, key_id, model, provider, ${sums} from usage_hours
    group by 1, 2, 3, 4, 5`,
  `usage_key_days select workspace_id, day, key_id, model, ${sums} from usage_days
    group by 1, 2, 3, 4`,
  `network_hours select hour, sum(requests), sum(prompt_tokens + completion_tokens)
    from usage_hours group by 1`,
  `network_days select day, model, provider, ${sums}, sum(requests), sum(errors) from usage_days
    group by 1, 2, 3`,
];

const member = (name: string): string => `json_extract(detail, '$.${name}')`;
/** What was used by teams and by customers, from the records. */
const senders = [
  `sender_days select workspace_id, 'team', ${member("team")}, created_at_ms / ${dayMs}, count(*), sum(cost_nano)
    from generations where ${member("team")} is not null group by 1, 3, 4`,
  `customer_days select workspace_id, ${member("customer")}, created_at_ms / ${dayMs}, model, count(*),
    sum(prompt_tokens), sum(completion_tokens), sum(cost_nano),
    sum(cast(${member("customerPriceNanoUsd")} as integer))
    from generations where ${member("customer")} is not null group by 1, 2, 3, 4`,
];

/**
 * Fills the empty tables of a gateway that is not running with the requests of a workspace in
 * daily use, up to this minute, with their counters; the same ones for the same plan.
 */
export function fillWithLife(path: string, plan: LivelyPlan): void {
  const database = new Database(path);
  database.run("pragma busy_timeout = 10000");
  const draw = draws(7);
  const insert = database.prepare(
    `insert into generations values (${Array.from({ length: 19 }, () => "?").join(", ")})`,
  );
  const drawnTime = (): number => {
    for (;;) {
      const ageMs = Math.floor(draw() * plan.days * dayMs) + 1_000;
      if (draw() < busyness(ageMs)) return plan.nowMs - ageMs;
    }
  };
  database.transaction(() => {
    for (const table of ["usage_hours", "usage_days", "usage_key_days", "network_hours"])
      database.run(`delete from ${table}`);
    database.run("delete from network_days");
    // What was asked before is an hour old, so that the newest requests are those of this plan.
    database.run(
      `update generations set created_at_ms = created_at_ms - ${hourMs},
        id = 'gen_' || printf('%012x', created_at_ms - ${hourMs}) || substr(id, 17)`,
    );
    for (let index = 0; index < plan.rows; index += 1) {
      // The last few are from the last minutes at any hour, so that the newest lists are alive.
      const atMs = index < 40 ? plan.nowMs - 2_000 - index * 17_000 : drawnTime();
      insert.run(...recordOf(index, atMs, plan, draw));
    }
    database.query(hours).run(plan.workspaceId);
    for (const rollup of [...rollups, ...senders]) database.run(`insert into ${rollup}`);
    database.run("delete from key_spend_hours");
    database.run(
      `insert into key_spend_hours select key_id, workspace_id, hour, sum(cost_nano), sum(requests)
        from usage_hours group by 1, 2, 3`,
    );
    database.run("delete from credential_uses");
    database.run(
      "insert into credential_uses select key_id, max(created_at_ms) from generations group by 1",
    );
  })();
  database.close();
}
