import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { AuditChain, type AuditChainTables } from "./audit/audit-chain.ts";
import { AuditLog, type AuditTables } from "./audit/audit-log.ts";
import { AuditStore } from "./audit/audit-store.ts";
import {
  IpAllowlist,
  type AllowedRange,
  type IpAllowlistTables,
} from "./allowlist/ip-allowlist.ts";
import { IpAllowlistEditor } from "./allowlist/ip-allowlist-editor.ts";
import { IpAllowlistStore } from "./allowlist/ip-allowlist-store.ts";
import { PrivacyEditor } from "../identity/workspaces/privacy-editor.ts";
import { PrivacyStore, type PrivacyTables } from "../identity/workspaces/privacy-store.ts";
import { PrivacyDirectory } from "../identity/workspaces/privacy-directory.ts";
import { withTables } from "../platform/storage/with-tables.ts";

/** All database tables of the security routes. */
export type SecurityTables = IpAllowlistTables & PrivacyTables & AuditTables & AuditChainTables;

/** The dependencies of the security routes and of the guard of all routes. */
export interface Security {
  allowlist: IpAllowlist;
  allowlistEditor: IpAllowlistEditor;
  privacy: PrivacyDirectory;
  privacyEditor: PrivacyEditor;
  auditLog: AuditLog;
  auditStore: AuditStore;
}

/** Builds the security parts and loads them from the database. */
export async function openSecurity({
  database,
  commits,
  clock,
  encryptionKey,
}: {
  database: Kysely<SecurityTables>;
  commits: CommitQueue;
  clock: Clock;
  encryptionKey: Uint8Array;
}): Promise<Security> {
  const stores = {
    list: new IpAllowlistStore(withTables(database)),
    privacy: new PrivacyStore(withTables(database)),
  };
  const allowlist = new IpAllowlist();
  const byWorkspace = new Map<string, AllowedRange[]>();
  for (const entry of await stores.list.loadAll()) {
    byWorkspace.set(entry.workspaceId, [...(byWorkspace.get(entry.workspaceId) ?? []), entry]);
  }
  for (const [workspaceId, entries] of byWorkspace) allowlist.put(workspaceId, entries);
  const privacy = new PrivacyDirectory();
  for (const { ownerId, privacy: demands } of await stores.privacy.loadAll())
    privacy.put(ownerId, demands);
  return {
    allowlist,
    allowlistEditor: new IpAllowlistEditor({ store: stores.list, allowlist, clock }),
    privacy,
    privacyEditor: new PrivacyEditor({ store: stores.privacy, directory: privacy, clock }),
    auditLog: new AuditLog({
      commits: new AuditChain({ commits, encryptionKey, database: withTables(database) }),
      clock,
    }),
    auditStore: new AuditStore(withTables(database)),
  };
}
