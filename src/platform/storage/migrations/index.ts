import type { Migration } from "../migrate.ts";
import { firstSchema } from "./2026-11-21-first-schema.ts";

/** Every migration, in the order of its name; released ones are never changed. */
export const migrations: readonly Migration[] = [firstSchema];
