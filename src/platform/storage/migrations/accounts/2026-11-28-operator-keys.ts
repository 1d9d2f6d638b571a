import { sql } from "kysely";
import type { Migration } from "../../storage.ts";

/**
 * The paths that keys of apps may call: those of `inferenceEndpoints` when this migration was
 * written. It is never changed, so it does not follow that list.
 */
const inferencePaths: readonly string[] = [
  "/chat/completions",
  "/messages",
  "/messages/count_tokens",
  "/responses",
  "/responses/compact",
  "/responses/input_tokens",
  "/responses/:id",
  "/responses/:id/cancel",
  "/responses/:id/input_items",
  "/embeddings",
  "/v2/embed",
  "/rerank",
  "/v2/rerank",
  "/moderations",
  "/decisions",
  "/systemone",
  "/ocr/extract",
  "/documents/parse",
  "/routing/explain",
  "/models",
  "/models/count",
  "/models/metrics",
  "/models/uptime",
  "/models/recommend",
  "/models/:owner/:model",
  "/models/:id",
  "/models/:owner/:model/routing-preview",
  "/models/:owner/:model/metrics",
  "/models/:owner/:model/privacy",
  "/models/:owner/:model/uptime",
  "/models/:owner/:model/prices",
  "/models/:id/routing-preview",
  "/models/:id/metrics",
  "/models/:id/privacy",
  "/models/:id/uptime",
  "/models/:id/prices",
  "/generation",
  "/generation/content",
  "/generation/:id",
  "/generation/:id/explain",
];

/**
 * Stores who holds the secret of an LLM key, and which operator gave it an operator's rights: none
 * did before. Keys that people approved for apps at /auth are restricted to inference, with the keys
 * that these created.
 */
export const operatorKeys: Migration = {
  name: "2026-11-28-operator-keys additive to 2026-11-23-first-schema",
  async up(database) {
    for (const column of ["holder_user_id", "operator_user_id"])
      await sql.raw(`alter table llm_keys add column ${column} text`).execute(database);
    await sql
      .raw(
        `update llm_keys set allowed_endpoints = '${JSON.stringify(inferencePaths)}'
         where (allowed_endpoints is null or allowed_endpoints = '[]')
           and (id in (select key_id from connections where origin = 'key')
             or parent_key_id in (select key_id from connections where origin = 'key'))`,
      )
      .execute(database);
  },
};
