import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const counts = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cost_nano",
] as const;

/** Counters of usage by day without the provider: what most questions ask, in a few rows where providers share the models. */
export const usageByKey: Migration = {
  name: "2026-12-03-usage-by-key",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "usage_key_days",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        day: "integer not null",
        key_id: "text not null",
        model: "text not null",
        ...Object.fromEntries(counts.map((name) => [name, "integer not null"])),
      },
      constraints: ["primary key (workspace_id, day, key_id, model)"],
    });
    const sums = sql.join(counts.map((name) => sql`sum(${sql.ref(name)})`));
    await sql`insert into usage_key_days select workspace_id, day, key_id, model, ${sums} from usage_days
      group by workspace_id, day, key_id, model`.execute(database);
  },
};
