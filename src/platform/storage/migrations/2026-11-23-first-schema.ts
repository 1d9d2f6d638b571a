import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";
import { accessSchema } from "./first-schema/access.ts";
import { byokSchema } from "./first-schema/byok.ts";
import { consentSchema } from "./first-schema/consent.ts";
import { gatewaysSchema } from "./first-schema/gateways.ts";
import { hubSchema } from "./first-schema/hub.ts";
import { identitySchema } from "./first-schema/identity.ts";
import { inferenceSchema } from "./first-schema/inference.ts";
import { insightsSchema } from "./first-schema/insights.ts";
import { ledgerSchema } from "./first-schema/ledger.ts";
import { paymentsSchema } from "./first-schema/payments.ts";
import type { SchemaPart } from "./first-schema/schema-part.ts";

/** The areas of the schema. Identity comes first, since the others refer to its tables. */
const parts: readonly SchemaPart[] = [
  identitySchema,
  accessSchema,
  ledgerSchema,
  paymentsSchema,
  byokSchema,
  consentSchema,
  inferenceSchema,
  hubSchema,
  insightsSchema,
  gatewaysSchema,
];

/** The schema of the first release. */
export const firstSchema: Migration = {
  name: "2026-11-23-first-schema",
  async up(database, kind) {
    for (const { tables, indexes, createRest } of parts) {
      for (const table of tables) await createTable(database, kind, table);
      for (const index of indexes) await sql.raw(index).execute(database);
      await createRest?.(database, kind);
    }
  },
};
