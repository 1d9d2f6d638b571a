import type { Kysely } from "kysely";
import type { PaymentTables, AutomaticRow } from "./payment-tables.ts";
import type { SavedCard } from "./stripe-client.ts";

/**
 * The terms that a workspace agreed to: below the threshold the card is charged, up to the ceiling
 * of a month.
 */
export interface AutomaticTerms {
  workspaceId: string;
  /** Whether it is for real money, as opposed to test mode. */
  live: boolean;
  thresholdCents: number;
  /** The credits of each top-up. */
  creditCents: number;
  /** The most that the card is charged in a month (UTC), fees included. */
  monthlyMaxCents: number;
  card: SavedCard;
  consentedAtMs: number;
  /** The id of the person who agreed. */
  consentedBy: string;
}

/** A workspace's automatic top-ups. */
export interface AutomaticTopUp extends AutomaticTerms {
  enabled: boolean;
  /** The reason why no further top-up is tried; null while they are active. */
  stopped: { atMs: number; reason: string } | null;
}

const fromRow = (row: AutomaticRow): AutomaticTopUp => ({
  workspaceId: row.workspace_id,
  live: row.live === 1,
  enabled: row.enabled === 1,
  thresholdCents: row.threshold_cents,
  creditCents: row.credit_cents,
  monthlyMaxCents: row.monthly_max_cents,
  card: { id: row.payment_method_id, label: row.card },
  consentedAtMs: row.consented_at_ms,
  consentedBy: row.consented_by,
  stopped:
    row.stopped_at_ms === null
      ? null
      : { atMs: row.stopped_at_ms, reason: row.stopped_reason ?? "" },
});

/** Stores agreements on automatic top-ups. */
export class AutomaticStore {
  constructor(private readonly database: Kysely<PaymentTables>) {}

  async find(workspaceId: string): Promise<AutomaticTopUp | undefined> {
    const row = await this.database
      .selectFrom("payment_automatic")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns the active ones of this mode. */
  async active(live: boolean): Promise<AutomaticTopUp[]> {
    return (await this.activeOnes(live).execute()).map(fromRow);
  }

  /** Returns those of a workspace; undefined where it has none that are active in this mode. */
  async findActive(workspaceId: string, live: boolean): Promise<AutomaticTopUp | undefined> {
    const row = await this.activeOnes(live)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  private activeOnes(live: boolean) {
    return this.database
      .selectFrom("payment_automatic")
      .selectAll()
      .where("enabled", "=", 1)
      .where("stopped_at_ms", "is", null)
      .where("live", "=", live ? 1 : 0);
  }

  /** Turns them on as agreed. Earlier agreements stay in the list of consents. */
  async agree(terms: AutomaticTerms): Promise<void> {
    const values = {
      live: terms.live ? 1 : 0,
      enabled: 1,
      threshold_cents: terms.thresholdCents,
      credit_cents: terms.creditCents,
      monthly_max_cents: terms.monthlyMaxCents,
      payment_method_id: terms.card.id,
      card: terms.card.label,
      consented_at_ms: terms.consentedAtMs,
      consented_by: terms.consentedBy,
      stopped_at_ms: null,
      stopped_reason: null,
    };
    await this.database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto("payment_consents")
        .values({
          workspace_id: terms.workspaceId,
          at_ms: terms.consentedAtMs,
          by_id: terms.consentedBy,
          terms: JSON.stringify(terms),
        })
        .execute();
      await transaction
        .insertInto("payment_automatic")
        .values({ workspace_id: terms.workspaceId, ...values })
        .onConflict((conflict) => conflict.column("workspace_id").doUpdateSet(values))
        .execute();
    });
  }

  /** Turns them off; returns whether they were on. */
  async turnOff(workspaceId: string): Promise<boolean> {
    const { numUpdatedRows } = await this.database
      .updateTable("payment_automatic")
      .set({ enabled: 0 })
      .where("workspace_id", "=", workspaceId)
      .where("enabled", "=", 1)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Stops automatic top-ups until a person agrees again. */
  async stop(
    workspaceId: string,
    { atMs, reason }: { atMs: number; reason: string },
  ): Promise<void> {
    await this.database
      .updateTable("payment_automatic")
      .set({ stopped_at_ms: atMs, stopped_reason: reason })
      .where("workspace_id", "=", workspaceId)
      .where("stopped_at_ms", "is", null)
      .execute();
  }
}
