import { sql } from "kysely";
import type { Migration } from "../storage.ts";

/** The provider's batches that one batch is divided into, as JSON; they replace the columns of the only one. */
export const providerBatchesInParts: Migration = {
  name: "2026-11-29-provider-batches-in-parts additive to 2026-11-23-first-schema",
  async up(database) {
    await sql.raw("alter table provider_batches add column parts text").execute(database);
  },
};
