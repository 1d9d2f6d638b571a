import type { Migration } from "../migrate.ts";
import { firstSchema } from "./2026-11-21-first-schema.ts";
import { hubFiles } from "./2026-11-23-hub-files.ts";
import { nodeReports } from "./2026-11-23-node-reports.ts";
import { recordArchive } from "./2026-11-23-record-archive.ts";

/**
 * Every migration, in the order of its name, which begins with the date when it was written.
 * Released migrations are never changed.
 */
export const migrations: readonly Migration[] = [firstSchema, hubFiles, nodeReports, recordArchive];
