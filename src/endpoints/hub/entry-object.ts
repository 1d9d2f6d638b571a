import { z } from "zod";
import {
  reviewStatuses,
  visibilities,
  type Entry,
  type EntryKind,
  type Hub,
  type HubCaller,
} from "../../mcp/hub/entry.ts";
import type { EntryVersion } from "../../mcp/hub/entry-store.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";

const sharedFields = {
  id: z.string(),
  description: z.string().nullable(),
  tags: z.array(z.string()),
  body: z
    .string()
    .nullable()
    .optional()
    .describe(
      "Left out in lists; null where a hub's items are too large together to be shown at once.",
    ),
  slug: z.string().nullable(),
  hub: z.string().nullable().describe("Slug of the hub that holds it."),
  visibility: z.enum(visibilities),
  version: z.int(),
  published_version: z
    .int()
    .nullable()
    .describe("The version that other workspaces see; null where they see none."),
  stars: z.int(),
  starred: z.boolean().describe("Whether the caller has starred it."),
  forks: z.int(),
  forked_from: z.string().nullable(),
  created_by: z
    .string()
    .nullable()
    .describe("The person who made it; null for records of other workspaces."),
  created_at: z.string(),
  updated_at: z.string(),
};

/** A prompt. */
export const promptSchema = z
  .object({
    object: z.literal("prompt"),
    title: z.string(),
    category: z.string().nullable(),
    platforms: z.array(z.string()),
    recommended_agents: z.array(z.string()),
    recommended_model: z.string().nullable(),
    status: z
      .enum(reviewStatuses)
      .nullable()
      .describe("The review of the newest version; null for prompts that are not public."),
    review: z.object({ note: z.string().nullable(), reviewed_at: z.string() }).nullable(),
    ...sharedFields,
  })
  .meta({ id: "Prompt" });

const documentFields = {
  name: z.string(),
  source_ref: z.string().nullable().describe("Where it was imported from."),
  ...sharedFields,
};

/** A skill: an Agent Skills document, SKILL.md with front matter. */
export const skillSchema = z
  .object({ object: z.literal("skill"), ...documentFields })
  .meta({ id: "Skill" });

const knowledgeSchema = z
  .object({ object: z.literal("knowledge_document"), ...documentFields })
  .meta({ id: "KnowledgeDocument" });
const pluginSchema = z
  .object({ object: z.literal("plugin"), ...documentFields })
  .meta({ id: "Plugin" });

/** Whatever a hub holds. */
export const itemSchema = z.union([promptSchema, skillSchema, knowledgeSchema, pluginSchema]);

/** A hub. */
export const hubSchema = z
  .object({
    id: z.string(),
    object: z.literal("hub"),
    slug: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    visibility: z.enum(visibilities),
    item_count: z.int(),
    owned: z.boolean().describe("Whether it belongs to the caller's workspace."),
    created_by: z.string().nullable(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: "Hub" });

/** A version of an entry. */
export const versionSchema = z
  .object({
    object: z.literal("version"),
    version: z.int(),
    title: z.string(),
    description: z.string().nullable(),
    tags: z.array(z.string()),
    body: z.string(),
    created_at: z.string(),
  })
  .meta({ id: "EntryVersion" });

const objects: Readonly<Record<Exclude<EntryKind, "prompt">, string>> = {
  skill: "skill",
  kb: "knowledge_document",
  plugin: "plugin",
};

const shared = (entry: Entry, caller: HubCaller) => {
  const owned = entry.workspaceId === caller.workspaceId;
  return {
    description: entry.description,
    tags: [...entry.tags],
    slug: entry.slug,
    hub: entry.hubSlug,
    visibility: entry.visibility,
    version: entry.version,
    published_version: entry.publicVersion,
    stars: entry.stars,
    starred: entry.starred,
    forks: entry.forks,
    forked_from: owned ? entry.forkedFrom : null,
    created_by: owned ? entry.personId : null,
    created_at: new Date(entry.createdAtMs).toISOString(),
    updated_at: new Date(entry.updatedAtMs).toISOString(),
  };
};

/** The public record of an entry. What other workspaces do not need to know of it is null. */
export function entryObject(
  entry: Entry,
  caller: HubCaller,
  { body = true }: { body?: boolean } = {},
) {
  const owned = entry.workspaceId === caller.workspaceId;
  const text = body ? { body: entry.body } : {};
  if (entry.kind !== "prompt") {
    return {
      id: entry.id,
      object: objects[entry.kind],
      name: entry.title,
      ...shared(entry, caller),
      source_ref: owned ? entry.sourceRef : null,
      ...text,
    };
  }
  const reviewedAt = owned ? isoOrNull(entry.reviewedAtMs) : null;
  return {
    id: entry.id,
    object: "prompt",
    title: entry.title,
    category: entry.category,
    platforms: [...entry.platforms],
    recommended_agents: [...entry.recommendedAgents],
    recommended_model: entry.recommendedModel,
    status: owned || entry.status === null ? entry.status : "approved",
    review: reviewedAt === null ? null : { note: entry.reviewNote, reviewed_at: reviewedAt },
    ...shared(entry, caller),
    ...text,
  };
}

/** The public record of a hub. */
export const hubObject = (hub: Hub, { workspaceId }: HubCaller): z.infer<typeof hubSchema> => ({
  id: hub.id,
  object: "hub",
  slug: hub.slug,
  name: hub.name,
  description: hub.description,
  visibility: hub.visibility,
  item_count: hub.itemCount,
  owned: hub.workspaceId === workspaceId,
  created_by: hub.workspaceId === workspaceId ? hub.personId : null,
  created_at: new Date(hub.createdAtMs).toISOString(),
  updated_at: new Date(hub.updatedAtMs).toISOString(),
});

/** A version as it is shown. */
export const versionObject = ({
  version,
  title,
  description,
  tags,
  body,
  createdAtMs,
}: EntryVersion): z.infer<typeof versionSchema> => ({
  object: "version",
  version,
  title,
  description,
  tags: [...tags],
  body,
  created_at: new Date(createdAtMs).toISOString(),
});
