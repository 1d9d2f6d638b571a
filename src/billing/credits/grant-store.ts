import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { Bucket } from "../ledger/transfer.ts";
import type { Kysely } from "kysely";

/** A grant as it is stored. */
export interface StandingGrant extends Grant {
  grantedAtMs: number;
}

/** The reason for which credits were granted: with the plan, by the operator, or for a referral. */
type GrantKind = "plan" | "admin" | "referral";

/**
 * Credits that the operator gives. Those of the monthly bucket lapse with their month; those of the
 * top-up bucket never do.
 */
export interface Grant {
  /** The id of the transfer, which is also the idempotency key. */
  transferId: string;
  workspaceId: string;
  bucket: Bucket;
  kind: GrantKind;
  amountNano: bigint;
  description: string | null;
  /** The id of the credential that granted them; `system` for a plan's credits. */
  grantedBy: string;
}

/** Rows of grants. */
export interface GrantTables {
  credit_grants: RowOf<StandingGrant>;
}

const { fromRow } = recordColumns<StandingGrant>({
  transferId: "plain",
  workspaceId: "plain",
  grantedAtMs: "plain",
  bucket: "plain",
  kind: "plain",
  amountNano: "nano",
  description: "plain",
  grantedBy: "plain",
});

/** Reads grants. They are written through the commit queue only. */
export class GrantStore {
  private readonly database: Kysely<GrantTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<GrantTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Returns the grant with this transfer id. */
  async find(transferId: string): Promise<StandingGrant | undefined> {
    const row = await this.database
      .selectFrom("credit_grants")
      .selectAll()
      .where("transfer_id", "=", transferId)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns grants, newest first; of one workspace where one is named. */
  async list({
    workspaceId,
    limit,
  }: {
    workspaceId: string | undefined;
    limit: number;
  }): Promise<StandingGrant[]> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    let query = this.database.selectFrom("credit_grants").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query
      .orderBy("granted_at_ms", "desc")
      .orderBy("transfer_id", "desc")
      .limit(limit)
      .execute();
    return rows.map(fromRow);
  }

  /**
   * Returns what each workspace was granted into its monthly bucket since a wall time, and which of
   * those grants came with a plan.
   */
  async givenSince(
    sinceMs: number,
  ): Promise<{ workspaceId: string; amountNano: bigint; transferId: string; kind: GrantKind }[]> {
    const rows = await this.database
      .selectFrom("credit_grants")
      .selectAll()
      .where("granted_at_ms", ">=", sinceMs)
      .where("bucket", "=", "monthly")
      .execute();
    return rows.map(fromRow);
  }
}
