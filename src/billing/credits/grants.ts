import type { InsertStatement } from "../../platform/storage/commit-queue.ts";
import { isUniqueViolation } from "../../platform/storage/storage-error.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { Grant, GrantStore } from "./grant-store.ts";

/** The outcome of a grant. */
type GrantOutcome = "ok" | "exists" | "exists_with_different_fields";

/** The insert of a grant, which is committed together with its transfer. */
export const grantInsert: InsertStatement = {
  name: "credit-grant",
  table: "credit_grants",
  columns: [
    "transfer_id",
    "workspace_id",
    "granted_at_ms",
    "bucket",
    "kind",
    "amount_nano",
    "description",
    "granted_by",
  ],
};

/** Grants credits as transfers of the ledger, each exactly once however often it is requested. */
export class Grants {
  private readonly ledger: LedgerPort;
  private readonly store: GrantStore;

  constructor(options: { ledger: LedgerPort; store: GrantStore }) {
    this.ledger = options.ledger;
    this.store = options.store;
  }

  /**
   * Grants credits, which count for the very next request. Rejects when the database refused, and
   * then nothing was granted.
   */
  async give(grant: Grant): Promise<GrantOutcome> {
    const { transferId, workspaceId, bucket, kind, amountNano, description, grantedBy } = grant;
    try {
      await this.ledger.credit({
        id: transferId,
        workspaceId,
        bucket,
        amountNano,
        kind: "grant",
        reference: kind,
        alongside: (atMs) => [
          {
            statement: grantInsert,
            values: [
              transferId,
              workspaceId,
              atMs,
              bucket,
              kind,
              Number(amountNano),
              description,
              grantedBy,
            ],
          },
        ],
      });
      return "ok";
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      const standing = await this.store.find(transferId);
      return standing !== undefined && isSame(standing, grant)
        ? "exists"
        : "exists_with_different_fields";
    }
  }
}

const isSame = (one: Grant, other: Grant): boolean =>
  one.workspaceId === other.workspaceId &&
  one.bucket === other.bucket &&
  one.kind === other.kind &&
  one.amountNano === other.amountNano;
