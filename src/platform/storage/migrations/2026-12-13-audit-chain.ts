import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Keyed hashes of the audit log's rows, each over the one before it: a chain for every gateway that ever wrote. */
export const auditChain: Migration = {
  name: "2026-12-13-audit-chain",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "audit_chain",
      clustered: true,
      columns: {
        chain: "text not null",
        seq: "integer not null",
        part: "text not null",
        workspace_id: "text not null",
        audit_id: "text not null",
        anchors: "text",
        hash: "text not null",
      },
      constraints: ["primary key (chain, seq)"],
    });
  },
};
