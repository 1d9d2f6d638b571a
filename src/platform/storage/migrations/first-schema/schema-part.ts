import type { Kysely } from "kysely";
import type { TableDefinition } from "../../create-table.ts";
import type { StorageKind } from "../../storage.ts";

/** The tables of one area. */
export interface SchemaPart {
  /** Tables come after those that they refer to. */
  tables: readonly TableDefinition[];
  indexes: readonly string[];
  /** Creates what differs between the engines: triggers, functions, full-text search. */
  createRest?(database: Kysely<unknown>, kind: StorageKind): Promise<void>;
}
