import type { Kysely } from "kysely";

/**
 * The outcome of a smoke test; `skipped` where there was nothing to test, such as no chat model.
 */
type SmokeOutcome = "passed" | "failed" | "skipped";

/** The stored results. */
export interface SmokeTables {
  smoke_results: {
    provider_id: string;
    at_ms: number;
    outcome: string;
    latency_ms: number | null;
    message: string | null;
  };
}

/** The last smoke test of a provider. */
export interface SmokeResult {
  providerId: string;
  atMs: number;
  outcome: SmokeOutcome;
  latencyMs: number | null;
  /** The reason for which it failed or was skipped. */
  message: string | null;
}

/** Stores the last smoke test of each provider. */
export class SmokeStore {
  constructor(private readonly database: Kysely<SmokeTables>) {}

  async all(): Promise<SmokeResult[]> {
    const rows = await this.database.selectFrom("smoke_results").selectAll().execute();
    return rows.map((row) => ({
      providerId: row.provider_id,
      atMs: row.at_ms,
      outcome: row.outcome as SmokeOutcome,
      latencyMs: row.latency_ms,
      message: row.message,
    }));
  }

  async save({ providerId, atMs, outcome, latencyMs, message }: SmokeResult): Promise<void> {
    const row = { at_ms: atMs, outcome, latency_ms: latencyMs, message };
    await this.database
      .insertInto("smoke_results")
      .values({ provider_id: providerId, ...row })
      .onConflict((conflict) => conflict.column("provider_id").doUpdateSet(row))
      .execute();
  }
}
