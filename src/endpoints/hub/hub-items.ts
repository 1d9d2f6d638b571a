import { z } from "zod";
import {
  defineEndpoint,
  type Endpoint,
  type RequestContext,
} from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
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
  pageFields,
  readsHub,
  slugField,
  tagsField,
  writesHub,
} from "./hub-fields.ts";
import { listSchema } from "../account/list-pages.ts";

const slugOf = (context: RequestContext<unknown>): string => context.param("slug");

/** Returns the hub's slug and the item's. */
const itemOf = (context: RequestContext<unknown>): { slug: string; item: string } => ({
  slug: slugOf(context),
  item: context.param("item"),
});

const kindField = z.enum(entryKinds, `must be one of ${entryKinds.join(", ")}`);

/** The kinds of a new entry; the last one is the contract's other name of `kb`. */
const newKinds = [...entryKinds, "knowledge doc"] as const;
const newKindField = z.enum(newKinds, `must be one of ${newKinds.join(", ")}`);

const itemsQuerySchema = z.object({ ...pageFields, kind: kindField.optional() });

const newItemSchema = z.strictObject({
  body: bodyField,
  kind: newKindField.default("kb").optional(),
  name: lineField(200).optional(),
  slug: slugField.optional(),
  tags: tagsField.optional(),
});

const importSchema = z.strictObject({
  source_ref: lineField(2_000).describe(
    "The https URL of a SKILL.md or of a public Git repository (https://host/path.git#ref:folder, or a forge's page of a folder), " +
      "or <hub>/<item> of a hub of this service.",
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
    description: "Newest first, without bodies.",
    query: itemsQuerySchema,
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
      "kind defaults to kb, a knowledge document; skill, prompt and plugin are the others. The name defaults to that of the front " +
      "matter or to the first heading. A skill must be a SKILL.md. A prompt in a public hub waits for approval.",
    body: newItemSchema,
    response: itemSchema,
    async handle(context, { hub }: Pick<Dependencies, "hub">) {
      const caller = hubCaller(context);
      const { kind: named = "kb", ...document } = context.body;
      const kind = named === "knowledge doc" ? "kb" : named;
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
    summary: "Show an item of a hub.",
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
      "A changed document, name or tags create a new version. In a public hub, the new version of a prompt waits for approval, and " +
      "other workspaces see the approved one until then. Allowed for its author and for admins of the workspace.",
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
    description:
      "Newest first, at most the last hundred. Other workspaces see only the published version.",
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
    description:
      "Allowed for its author, for the author of the hub, and for admins of the workspace.",
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
      "Fetches documents over TLS, from public addresses only, within 10 seconds and up to 400,000 bytes. A folder of a Git " +
      "repository is imported with its files below scripts/, references/ and assets/: at most 100 files and 2 MB, within 20 " +
      "seconds.",
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
