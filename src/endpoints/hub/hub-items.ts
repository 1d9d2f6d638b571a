import { z } from "zod";
import {
  defineEndpoint,
  type Endpoint,
  type RequestContext,
} from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/check-body.ts";
import { assertMayChange, entryKinds } from "../../mcp/hub/entry.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  entryObject,
  itemSchema,
  skillSchema,
  versionListSchema,
  versionObject,
} from "./entry-routes.ts";
import {
  bodyField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  lineField,
  listObject,
  listSchema,
  pageFields,
  pageParameters,
  readsHub,
  slugField,
  tagsField,
  writesHub,
} from "./hub-fields.ts";

const slugOf = (context: RequestContext<unknown>): string => context.param("slug");

/** Returns the hub's slug and the item's. */
const itemOf = (context: RequestContext<unknown>): { slug: string; item: string } => ({
  slug: slugOf(context),
  item: context.param("item"),
});

const kindField = z.enum(entryKinds, `must be one of ${entryKinds.join(", ")}`);

const itemsQuerySchema = z.object({ ...pageFields, kind: kindField.optional() });

const newItemSchema = z.strictObject({
  body: bodyField,
  kind: kindField.default("kb").optional(),
  name: lineField(200).optional(),
  slug: slugField.optional(),
  tags: tagsField.optional(),
});

const importSchema = z.strictObject({
  source_ref: lineField(2_000).describe(
    "The https URL of a SKILL.md, of a public Git repository (https://host/path.git#ref:folder, or a forge's page of a folder), or " +
      "<hub>/<item> of a hub of this service.",
  ),
});

const itemChangesSchema = newItemSchema.omit({ kind: true }).partial();

/** The routes for the items of a hub: lists, changes, versions and imports. */
export const hubItemRoutes: readonly Endpoint<Dependencies>[] = [
  defineEndpoint({
    ...forHub,
    method: "GET",
    path: "/hubs/:slug/items",
    access: readsHub,
    summary: "List the items of a hub.",
    description: "Newest first, without their bodies.",
    query: z.object({ ...pageParameters, kind: z.enum(entryKinds).optional() }),
    response: () => listSchema(itemSchema()),
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const query = checkBody(itemsQuerySchema, Object.fromEntries(context.query));
      const found = await hub.hubs.find(caller, slugOf(context));
      const scope = found.workspaceId === caller.workspaceId ? "own" : "public";
      const page = await hub.entries.list(caller, { ...query, scope, hubId: found.id });
      return context.json(listObject(page, (entry) => entryObject(entry, caller, { body: false })));
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "POST",
    path: "/hubs/:slug/items",
    access: writesHub,
    idempotent: true,
    bodyBytesMax: hubBodyBytesMax,
    summary: "Add an item to a hub.",
    description:
      "kind is kb, a knowledge document, unless it is skill, prompt or plugin. Without a name it has that of its front matter or " +
      "its first heading. A skill must be a SKILL.md; a prompt in a public hub waits for approval.",
    body: newItemSchema,
    response: itemSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { kind = "kb", ...document } = context.body;
      const entry = await hub.add(caller, { kind, hub: slugOf(context), ...document });
      context.changed = entry.id;
      return context.json(entryObject(entry, caller));
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "GET",
    path: "/hubs/:slug/items/:item",
    access: readsHub,
    summary: "Show an item of a hub, by its slug or id.",
    response: itemSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { entry } = await hub.hubs.findItem(caller, itemOf(context));
      return context.json(entryObject(entry, caller));
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "PATCH",
    path: "/hubs/:slug/items/:item",
    access: writesHub,
    bodyBytesMax: hubBodyBytesMax,
    summary: "Change an item of a hub.",
    description:
      "Another document, name or other tags make a new version; of a prompt in a public hub it waits for approval, and others see " +
      "the approved one until then. Its author may, and admins of the workspace.",
    body: itemChangesSchema,
    response: itemSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { slug, ...changes } = context.body;
      const { entry } = await hub.hubs.findItem(caller, itemOf(context));
      const content = await hub.changedContent(entry, changes);
      return context.json(
        entryObject(await hub.entries.change(caller, entry.id, { slug, content }), caller),
      );
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "GET",
    path: "/hubs/:slug/items/:item/versions",
    access: readsHub,
    summary: "List the versions of an item of a hub.",
    description: "Newest first; other workspaces see the published one. The last hundred are kept.",
    response: versionListSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { entry } = await hub.hubs.findItem(caller, itemOf(context));
      const found = await hub.entries.versions(caller, entry.id);
      return context.json({ object: "list", data: found.map(versionObject) });
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "DELETE",
    path: "/hubs/:slug/items/:item",
    access: writesHub,
    summary: "Delete an item of a hub.",
    description: "Its author may, that of the hub, and admins of the workspace.",
    response: () => z.object({ deleted: z.literal(true), id: z.string() }),
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const found = await hub.hubs.findItem(caller, itemOf(context));
      if (!hub.hubs.mayChangeItem(caller, found)) assertMayChange(caller, found.entry);
      await hub.entries.store.remove([found.entry.id]);
      return context.json({ deleted: true, id: found.entry.id });
    },
  }),
  defineEndpoint({
    ...forHub,
    method: "POST",
    path: "/hubs/:slug/import",
    access: writesHub,
    idempotent: true,
    bodyBytesMax: hubBodyBytesMax,
    summary: "Import a skill into a hub.",
    description:
      "A document is fetched over TLS from public addresses alone, within 10 seconds and 400,000 bytes. A folder of a Git repository " +
      "brings its files, scripts/, references/ and assets/ along: at most 100 files and 2 MB, within 20 seconds.",
    body: importSchema,
    response: skillSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const entry = await hub.importSkill(caller, {
        hub: slugOf(context),
        sourceRef: context.body.source_ref,
      });
      context.changed = entry.id;
      return context.json(entryObject(entry, caller));
    },
  }),
];
