import type { DialectId } from "./dialect-id.ts";
import type { JsonObject } from "./json.ts";

/**
 * Fields that the canonical form has no name for, as they stood in one dialect's JSON. They go back
 * into the same dialect unchanged and are a declared loss in every other.
 */
export interface Extensions {
  dialect: DialectId;
  fields: JsonObject;
}
