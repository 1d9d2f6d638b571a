import type { EntryKind, ReviewStatus, Visibility } from "./entry.ts";
import type { EntryFileTables } from "./entry-files.ts";

/** Rows of entries, their versions and stars, and of hubs. */
export interface HubTables extends EntryFileTables {
  hubs: {
    id: string;
    workspace_id: string;
    person_id: string;
    slug: string;
    name: string;
    description: string | null;
    visibility: Visibility;
    created_at_ms: number;
    updated_at_ms: number;
  };
  hub_entries: {
    id: string;
    kind: EntryKind;
    workspace_id: string;
    person_id: string;
    hub_id: string | null;
    slug: string | null;
    visibility: Visibility;
    status: ReviewStatus | null;
    version: number;
    public_version: number | null;
    stars: number;
    forks: number;
    forked_from: string | null;
    source_ref: string | null;
    review_note: string | null;
    reviewed_by: string | null;
    reviewed_at_ms: number | null;
    created_at_ms: number;
    updated_at_ms: number;
  };
  hub_versions: {
    entry_id: string;
    version: number;
    person_id: string;
    created_at_ms: number;
    title: string;
    description: string | null;
    category: string | null;
    tags: string;
    details: string;
    body: string;
  };
  hub_stars: { person_id: string; workspace_id: string; entry_id: string; created_at_ms: number };
  workspaces: { id: string; blocked_at_ms: number | null };
}
