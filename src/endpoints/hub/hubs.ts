import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Entry } from "../../mcp/hub/entry.ts";
import type { Dependencies } from "../dependencies.ts";
import { entryObject, hubObject, hubSchema, itemSchema } from "./entry-routes.ts";
import {
  descriptionField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  lineField,
  listObject,
  pageFields,
  readsHub,
  slugField,
  visibilityField,
  writesHub,
} from "./hub-fields.ts";
import { listSchema } from "../account/list-pages.ts";
import { zipAnswer } from "./skills.ts";

const slugOf = (context: RequestContext<unknown>): string => context.param("slug");

const scopes = ["workspace", "public"] as const;

const listQuerySchema = z.object({
  ...pageFields,
  scope: z.enum(scopes, "must be workspace or public").default("workspace"),
});

export const listHubs = defineEndpoint({
  ...forHub,
  method: "GET",
  path: "/hubs",
  access: readsHub,
  summary: "List hubs.",
  description:
    "Newest first. Returns the hubs of the workspace, or with scope=public those that every workspace sees.",
  query: listQuerySchema,
  response: () => listSchema(hubSchema()),
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { scope, ...query } = checkBody(listQuerySchema, Object.fromEntries(context.query));
    const page = await hub.hubs.list(caller, {
      ...query,
      scope: scope === "workspace" ? "own" : scope,
    });
    return context.json(listObject(page, (each) => hubObject(each, caller)));
  },
});

const newHubSchema = z.strictObject({
  name: lineField(200),
  slug: slugField.optional().describe("Slug of the hub. Default: derived from the name."),
  description: descriptionField.nullish(),
  visibility: visibilityField.default("workspace").optional(),
});

export const createHub = defineEndpoint({
  ...forHub,
  method: "POST",
  path: "/hubs",
  access: writesHub,
  idempotent: true,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Create a hub.",
  description:
    "A hub is a collection of skills, prompts, knowledge documents and plugins. Slugs are unique within a workspace, and among " +
    "public hubs.",
  body: newHubSchema,
  response: hubSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { name, slug, description, visibility = "workspace" } = context.body;
    const created = await hub.hubs.create(caller, {
      name,
      slug,
      description: description ?? null,
      visibility,
    });
    context.changed = created.id;
    return context.json(hubObject(created, caller));
  },
});

/**
 * The most items that a hub is shown with, and the most characters of all their bodies together.
 */
const shownItemsMax = 100;
const shownCharactersMax = 256 * 1024;

/**
 * Returns the items, with their bodies from the first one on, as long as there is room for them.
 */
function withBodies(entries: readonly Entry[], show: (entry: Entry) => object): object[] {
  let room = shownCharactersMax;
  return entries.map((entry) => {
    room -= entry.body.length;
    return { ...show(entry), body: room >= 0 ? entry.body : null };
  });
}

export const getHub = defineEndpoint({
  ...forHub,
  method: "GET",
  path: "/hubs/:slug",
  access: readsHub,
  summary: "Show a hub with its items.",
  description:
    `Accepts the slug or the id; a hub of the workspace takes precedence over a public one. Returns the ${shownItemsMax} newest ` +
    `items, with bodies of up to ${shownCharactersMax} characters together. GET /hubs/{slug}/items lists all items.`,
  response: () =>
    hubSchema()
      .extend({ items: z.array(itemSchema()) })
      .meta({ id: "HubWithItems" }),
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const found = await hub.hubs.find(caller, slugOf(context));
    const scope = found.workspaceId === caller.workspaceId ? "own" : "public";
    const { data } = await hub.entries.list(caller, {
      scope,
      hubId: found.id,
      limit: shownItemsMax,
    });
    return context.json({
      ...hubObject(found, caller),
      items: withBodies(data, (entry) => entryObject(entry, caller, { body: false })),
    });
  },
});

const hubChangesSchema = z.strictObject({
  name: lineField(200).optional(),
  slug: slugField.optional(),
  description: descriptionField.nullish(),
  visibility: visibilityField.optional(),
});

export const changeHub = defineEndpoint({
  ...forHub,
  method: "PATCH",
  path: "/hubs/:slug",
  access: writesHub,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Change a hub.",
  description:
    "Items have the visibility of their hub. Prompts of a hub that becomes public wait for approval.",
  body: hubChangesSchema,
  response: hubSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { name, slug, description, visibility } = context.body;
    const changed = await hub.hubs.change(caller, slugOf(context), {
      ...(name === undefined ? {} : { name }),
      ...(slug === undefined ? {} : { slug }),
      ...(description === undefined ? {} : { description }),
      ...(visibility === undefined ? {} : { visibility }),
    });
    return context.json(hubObject(changed, caller));
  },
});

export const deleteHub = defineEndpoint({
  ...forHub,
  method: "DELETE",
  path: "/hubs/:slug",
  access: writesHub,
  summary: "Delete a hub and its items.",
  response: () => z.object({ deleted: z.literal(true), id: z.string(), slug: z.string() }),
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const { id, slug } = await hub.hubs.remove(hubCaller(context), slugOf(context));
    return context.json({ deleted: true, id, slug });
  },
});

export const exportHub = defineEndpoint({
  ...forHub,
  method: "GET",
  path: "/hubs/:slug/export",
  access: readsHub,
  summary: "Export a hub as a zip archive.",
  description: "The archive has folders for skills, prompts, knowledge and plugins.",
  otherResponseTypes: ["application/zip"],
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { slug } = await hub.hubs.find(caller, slugOf(context));
    return zipAnswer(context, { bytes: await hub.exportHub(caller, slugOf(context)), name: slug });
  },
});
