import { creatorIdOf, type AccountCaller } from "../../identity/keys/caller.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";

/** Rows of entries, their versions, files and stars, and of hubs. */
export interface HubTables {
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
  /** Files beside skills' documents. */
  hub_files: {
    bundle_id: string;
    path: string;
    entry_id: string;
    workspace_id: string;
    bytes: number;
    data: string;
  };
  hub_stars: { person_id: string; workspace_id: string; entry_id: string; created_at_ms: number };
  workspaces: { id: string; blocked_at_ms: number | null };
}

/** The kinds of entries of a hub. Prompts and skills exist outside of hubs, too. */
export const entryKinds = ["prompt", "skill", "kb", "plugin"] as const;
export type EntryKind = (typeof entryKinds)[number];

/** The people who can see a record: its person, its workspace, or everyone. */
export const visibilities = ["private", "workspace", "public"] as const;
export type Visibility = (typeof visibilities)[number];

/** The review status of a public prompt; null for what is not reviewed. */
export const reviewStatuses = ["pending_review", "approved", "rejected"] as const;
export type ReviewStatus = (typeof reviewStatuses)[number];

/** A file beside a skill's document. */
export interface SkillFile {
  /** The path inside the skill's folder, with slashes. */
  path: string;
  data: Buffer;
}

/** The files beside a skill's document, without their contents. */
export interface FileBundle {
  id: string;
  files: readonly { path: string; bytes: number }[];
}

/** The content of one version of an entry. */
export interface EntryContent {
  title: string;
  description: string | null;
  category: string | null;
  tags: readonly string[];
  platforms: readonly string[];
  recommendedAgents: readonly string[];
  recommendedModel: string | null;
  body: string;
  /** Null where there are none beside the document. */
  bundle: FileBundle | null;
}

/**
 * A prompt, skill, knowledge document or plugin, in the version that its reader sees. Times are in
 * milliseconds.
 */
export interface Entry extends EntryContent {
  /** A `prm_`, `skl_`, `kbd_` or `plg_` id. */
  id: string;
  kind: EntryKind;
  workspaceId: string;
  personId: string;
  hubId: string | null;
  /** The slug of the hub that contains it. */
  hubSlug: string | null;
  slug: string | null;
  visibility: Visibility;
  status: ReviewStatus | null;
  /** The number of this version. */
  version: number;
  /** The version that other workspaces see; null where they see none. */
  publicVersion: number | null;
  stars: number;
  forks: number;
  /** Whether the reader has starred it. */
  starred: boolean;
  forkedFrom: string | null;
  /** The source from which it was imported. */
  sourceRef: string | null;
  reviewNote: string | null;
  reviewedBy: string | null;
  reviewedAtMs: number | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/** A collection of entries. */
export interface Hub {
  /** A `hub_` id. */
  id: string;
  workspaceId: string;
  personId: string;
  slug: string;
  name: string;
  description: string | null;
  visibility: Visibility;
  /** The number of entries that its reader sees. */
  itemCount: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** The caller who reads and writes here, and the workspace. */
export interface HubCaller {
  workspaceId: string;
  /** The person, or the management key where no person created it. */
  personId: string;
  /** Whether the caller may also change records of the workspace's other people. */
  administers: boolean;
}

/**
 * Returns the hub caller of an administering caller. A management key acts for the person who
 * created it, an app for the one who granted it.
 */
export function hubCallerOf(caller: AccountCaller): HubCaller {
  const personId =
    caller.kind === "management-key"
      ? (caller.key.creatorUserId ?? caller.key.id)
      : creatorIdOf(caller);
  const administers =
    caller.kind === "management-key" || (caller.kind === "session" && caller.role !== "member");
  return { workspaceId: caller.workspace.id, personId, administers };
}

type Owned = { workspaceId: string; personId: string; visibility: Visibility };

/**
 * Returns whether a caller may change a record: its person may and, unless it is private, so may
 * the administrators of its workspace.
 */
export const mayChange = (
  caller: HubCaller,
  { workspaceId, personId, visibility }: Owned,
): boolean =>
  workspaceId === caller.workspaceId &&
  (personId === caller.personId || (caller.administers && visibility !== "private"));

/** Throws `forbidden` for a record that the caller sees and may not change. */
export function assertMayChange(caller: HubCaller, owned: Owned): void {
  if (mayChange(caller, owned)) return;
  const who =
    owned.workspaceId === caller.workspaceId
      ? "its author, or an admin of the workspace"
      : "the workspace that it belongs to";
  throw new GatewayError(
    "forbidden",
    `Only ${who} may change this. Fork it to have a copy of your own.`,
  );
}

/**
 * Returns a slug for a name: lower-case letters, digits and single dashes; empty where the name has
 * none of them.
 */
export const slugFrom = (name: string): string =>
  name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 64)
    .replace(/^-+|-+$/g, "");

/** A page of a list, newest first. */
export interface Page<Item> {
  data: Item[];
  nextCursor: string | null;
}

/** Returns the cursor of a record in a list that is ordered by time and id. */
const cursorAfter = ({ atMs, id }: { atMs: number; id: string }): string =>
  `${atMs.toString(36)}.${id}`;

/** Parses a cursor. Throws `bad_request`. */
export function readCursor(cursor: string): { atMs: number; id: string } {
  const [, time, id] = /^([0-9a-z]{1,9})\.([a-z]{3}_[0-9a-f]{32})$/.exec(cursor) ?? [];
  if (time !== undefined && id !== undefined) return { atMs: Number.parseInt(time, 36), id };
  throw badField("cursor", "must be next_cursor of the page before.");
}

/**
 * Returns a page of what was found, given one more record than the page holds if there is a next
 * page.
 */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  placeOf: (item: Item) => { atMs: number; id: string },
): Page<Item> {
  const data = found.slice(0, limit);
  const last = data.at(-1);
  return {
    data,
    nextCursor: found.length > limit && last !== undefined ? cursorAfter(placeOf(last)) : null,
  };
}
