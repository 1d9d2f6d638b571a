import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import { AliasStore } from "./alias-store.ts";
import { AliasDirectory } from "./alias-directory.ts";
import { AliasEditor } from "./alias-editor.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** A name of a workspace's own for a model, or for several. */
export interface WorkspaceAlias {
  workspaceId: string;
  /** In lower case; unique within its workspace; never changes. */
  name: string;
  target: AliasTarget;
  description: string | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/** An alias as its own workspace names it. */
export type AliasReference = Pick<WorkspaceAlias, "workspaceId" | "name">;

/** Rows of workspaces' aliases. */
export interface AliasTables {
  workspace_aliases: {
    workspace_id: string;
    name: string;
    target: string;
    description: string | null;
    created_at_ms: number;
    updated_at_ms: number;
  };
}

/** The aliases of all workspaces in memory, and their editor. */
export interface Aliases {
  aliases: AliasDirectory;
  aliasEditor: AliasEditor;
}

/** Loads every alias into memory. */
export async function openAliases(database: Kysely<AliasTables>, clock: Clock): Promise<Aliases> {
  const store = new AliasStore(withTables(database));
  const aliases = new AliasDirectory();
  const stored = Map.groupBy(await store.list(), ({ workspaceId }) => workspaceId);
  for (const [workspaceId, each] of stored) aliases.replaceWorkspace(workspaceId, each);
  return { aliases, aliasEditor: new AliasEditor({ store, directory: aliases, clock }) };
}
