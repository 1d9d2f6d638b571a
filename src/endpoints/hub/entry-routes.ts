import { z } from "zod";
import {
  defineEndpoint,
  type Endpoint,
  type RequestContext,
} from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { EntryVersion } from "../../mcp/hub/entry-store.ts";
import {
  reviewStatuses,
  visibilities,
  type Entry,
  type EntryKind,
  type Hub,
  type HubCaller,
} from "../../mcp/hub/entry.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  bodyField,
  categoryField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  lineField,
  listObject,
  pageFields,
  readsHub,
  visibilityField,
  writesHub,
} from "./hub-fields.ts";
import { listSchema } from "../account/list-pages.ts";

const sharedFields = lazily(() => ({
  id: z.string(),
  description: z.string().nullable(),
  tags: z.array(z.string()),
  body: z
    .string()
    .nullable()
    .optional()
    .describe(
      "Omitted in lists; null if the items of a hub are together too large for one answer.",
    ),
  slug: z.string().nullable(),
  hub: z.string().nullable().describe("Slug of the hub that contains it."),
  visibility: z.enum(visibilities),
  version: z.int(),
  published_version: z
    .int()
    .nullable()
    .describe("Version that other workspaces see; null if they see none."),
  stars: z.int(),
  starred: z.boolean().describe("Whether the caller has starred it."),
  forks: z.int(),
  forked_from: z.string().nullable(),
  created_by: z
    .string()
    .nullable()
    .describe("Id of the author; null for entries of other workspaces."),
  created_at: z.string(),
  updated_at: z.string(),
}));

/** A prompt. */
export const promptSchema = lazily(() =>
  z
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
        .describe(
          "State of the review of the newest version; null for prompts that are not public.",
        ),
      review: z.object({ note: z.string().nullable(), reviewed_at: z.string() }).nullable(),
      ...sharedFields(),
    })
    .meta({ id: "Prompt" }),
);

const documentFields = lazily(() => ({
  name: z.string(),
  source_ref: z.string().nullable().describe("Address that it was imported from."),
  ...sharedFields(),
}));

/** A skill: an Agent Skills document, SKILL.md with front matter. */
export const skillSchema = lazily(() =>
  z
    .object({
      object: z.literal("skill"),
      ...documentFields(),
      files: z
        .array(
          z.object({
            path: z.string().meta({ description: "Path relative to the skill's folder." }),
            bytes: z.int().meta({ description: "Size of the file in bytes." }),
          }),
        )
        .describe("Files beside SKILL.md, such as scripts; included in the export."),
    })
    .meta({ id: "Skill" }),
);

const knowledgeSchema = lazily(() =>
  z
    .object({ object: z.literal("knowledge_document"), ...documentFields() })
    .meta({ id: "KnowledgeDocument" }),
);
const pluginSchema = lazily(() =>
  z.object({ object: z.literal("plugin"), ...documentFields() }).meta({ id: "Plugin" }),
);

/** An entry of any kind. */
export const itemSchema = lazily(() =>
  z.union([promptSchema(), skillSchema(), knowledgeSchema(), pluginSchema()]),
);

/** A hub. */
export const hubSchema = lazily(() =>
  z
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
    .meta({ id: "Hub" }),
);

/** A version of an entry. */
const versionSchema = lazily(() =>
  z
    .object({
      object: z.literal("version"),
      version: z.int(),
      title: z.string(),
      description: z.string().nullable(),
      tags: z.array(z.string()),
      body: z.string(),
      created_at: z.string(),
    })
    .meta({ id: "EntryVersion" }),
);

/** The versions of an entry. */
export const versionListSchema = lazily(() =>
  z.object({
    object: z.literal("list"),
    data: z.array(versionSchema()),
  }),
);

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

/** Returns the public record of an entry. What other workspaces need not know of it is null. */
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
      ...(entry.kind === "skill" ? { files: entry.bundle?.files ?? [] } : {}),
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

/** Returns the public record of a hub. */
export const hubObject = (hub: Hub, { workspaceId }: HubCaller): AnswerOf<typeof hubSchema> => ({
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

/** Returns a version as it is shown. */
export const versionObject = ({
  version,
  title,
  description,
  tags,
  body,
  createdAtMs,
}: EntryVersion): AnswerOf<typeof versionSchema> => ({
  object: "version",
  version,
  title,
  description,
  tags: [...tags],
  body,
  created_at: new Date(createdAtMs).toISOString(),
});

const scopes = ["workspace", "public", "starred"] as const;
const scopeProblem = `must be one of ${scopes.join(", ")}`;

const querySchema = z.object({
  ...pageFields,
  scope: z.enum(scopes, scopeProblem).default("workspace"),
  tag: plainText(50).toLowerCase().optional(),
  category: categoryField.optional(),
  status: z.enum(reviewStatuses, `must be one of ${reviewStatuses.join(", ")}`).optional(),
});

const forkSchema = z.strictObject({
  title: lineField(200).optional(),
  body: bodyField.optional(),
  visibility: visibilityField.default("private").optional(),
});

const deletedSchema = lazily(() => z.object({ deleted: z.literal(true), id: z.string() }));

type Kind = Extract<EntryKind, "prompt" | "skill">;

const idOf = (context: RequestContext<unknown>): string => context.param("id");
const schemaOf = (kind: Kind) => (kind === "prompt" ? promptSchema : skillSchema);

function readingRoutes(kind: Kind): readonly Endpoint<Dependencies>[] {
  const base = `/${kind}s`;
  const schema = schemaOf(kind);

  const list = defineEndpoint({
    ...forHub,
    method: "GET",
    path: base,
    access: readsHub,
    summary: `List ${kind}s.`,
    description:
      "Newest first, without bodies. scope=workspace, the default, lists those of the workspace; public those that every workspace " +
      "sees; starred those that the caller has starred.",
    query: querySchema,
    response: () => listSchema(schema()),
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { scope, ...query } = checkBody(querySchema, Object.fromEntries(context.query));
      const page = await hub.entries.list(caller, {
        ...query,
        kind,
        scope: scope === "workspace" ? "own" : scope,
      });
      return context.json(listObject(page, (entry) => entryObject(entry, caller, { body: false })));
    },
  });

  const show = defineEndpoint({
    ...forHub,
    method: "GET",
    path: `${base}/:id`,
    access: readsHub,
    summary: `Show a ${kind}.`,
    response: schema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      return context.json(entryObject(await hub.entries.find(caller, idOf(context), kind), caller));
    },
  });

  const versions = defineEndpoint({
    ...forHub,
    method: "GET",
    path: `${base}/:id/versions`,
    access: readsHub,
    summary: `List the versions of a ${kind}.`,
    description:
      "Newest first, at most the last hundred. Other workspaces see only the published version.",
    response: versionListSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const found = await hub.entries.versions(hubCaller(context), idOf(context), kind);
      return context.json({ object: "list", data: found.map(versionObject) });
    },
  });

  return [list, show, versions];
}

function writingRoutes(kind: Kind): readonly Endpoint<Dependencies>[] {
  const base = `/${kind}s`;
  const schema = schemaOf(kind);

  const remove = defineEndpoint({
    ...forHub,
    method: "DELETE",
    path: `${base}/:id`,
    access: writesHub,
    summary: `Delete a ${kind} and its versions.`,
    description: "Its forks remain.",
    response: deletedSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      await hub.entries.remove(hubCaller(context), idOf(context), kind);
      return context.json({ deleted: true, id: idOf(context) });
    },
  });

  const starring = ({ starred }: { starred: boolean }) =>
    defineEndpoint({
      ...forHub,
      method: starred ? "POST" : "DELETE",
      path: `${base}/:id/star`,
      access: writesHub,
      ...(starred ? { idempotent: true } : {}),
      summary: starred ? `Star a ${kind}.` : `Remove the star of a ${kind}.`,
      description: "Applies to the caller's person. Repeating the request has no effect.",
      response: schema,
      async handle(context, { hub }: Pick<Dependencies, "hub">) {
        const caller = hubCaller(context);
        return context.json(
          entryObject(await hub.entries.setStar(caller, idOf(context), { starred, kind }), caller),
        );
      },
    });

  const fork = defineEndpoint({
    ...forHub,
    method: "POST",
    path: `${base}/:id/fork`,
    access: writesHub,
    idempotent: true,
    bodyBytesMax: hubBodyBytesMax,
    summary: `Copy a ${kind} into the workspace.`,
    description:
      "Copies the version that the caller sees. The copy is private unless visibility says otherwise.",
    body: forkSchema,
    bodyOptional: true,
    response: schema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { title, body, visibility } = context.body;
      const entry = await hub.entries.fork(caller, idOf(context), {
        kind,
        visibility,
        ...(title === undefined ? {} : { title }),
        ...(body === undefined ? {} : { body }),
      });
      context.changed = entry.id;
      return context.json(entryObject(entry, caller));
    },
  });

  return [remove, starring({ starred: true }), starring({ starred: false }), fork];
}

/** Returns the routes that prompts and skills share: lists, versions, stars and forks. */
export const entryRoutes = (kind: Kind): readonly Endpoint<Dependencies>[] => [
  ...readingRoutes(kind),
  ...writingRoutes(kind),
];
