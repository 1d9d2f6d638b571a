import type { Migration } from "../migrate.ts";
import { firstSchema } from "./2026-11-23-first-schema.ts";
import { presetOfBackgroundResponses } from "./2026-11-25-preset-of-background-responses.ts";

/**
 * Every migration, in the order of its name, which begins with the date when it was written.
 * Released migrations are never changed.
 */
export const migrations: readonly Migration[] = [firstSchema, presetOfBackgroundResponses];
