import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody, refuseUnknownFields } from "../../http/bodies/check-body.ts";
import { lazily } from "../../http/endpoint.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { aliasesMax } from "../../identity/workspaces/alias-editor.ts";
import { modelsOfAlias } from "../../inference/routing/model-aliases.ts";
import { findModel, splitShortcuts } from "../../inference/routing/resolve-models.ts";
import { aliasNameSchema, aliasTargetSchema } from "../../platform/config/alias-settings.ts";
import { badField } from "../../platform/kernel/errors.ts";
import type { AliasTarget } from "../../platform/kernel/models/model-alias.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  plainText,
  forPresets,
  readsPresets,
  writesPresets,
} from "./account-fields.ts";
import { descending, pageOf, pageQuery, placeFields, timeRank } from "./list-pages.ts";
import type { WorkspaceAlias } from "../../identity/workspaces/alias-store.ts";

const nameField = aliasNameSchema.describe(
  "The name that requests send as `model`: letters, digits, dots, colons and dashes, no slash. Kept in lower case.",
);

const targetField = aliasTargetSchema.describe(
  "A model id; a list of ids, of which the others are fallbacks; or entries of `model` with `weight` or `when` (`key`, `tag`, " +
    "`header`, `metadata`), as under `aliases:` of switchyard.yaml.",
);

const descriptionField = plainText(2_000).nullish();

const newAliasSchema = z.object({
  name: nameField,
  target: targetField,
  description: descriptionField,
});

const aliasChangesSchema = z.object({
  target: targetField.optional(),
  description: descriptionField.describe("Omitted: unchanged. null: removed."),
});

const aliasObjectSchema = lazily(() =>
  z
    .object({
      object: z.literal("alias"),
      name: z.string(),
      target: targetField,
      models: z.array(z.string()).describe("Every model that the name may mean, in order."),
      description: z.string().nullable(),
      created_at: z.string(),
      updated_at: z.string(),
    })
    .meta({ id: "Alias" }),
);

const aliasObject = ({ name, target, description, ...alias }: WorkspaceAlias) => ({
  object: "alias",
  name,
  target,
  models: modelsOfAlias(target),
  description,
  created_at: new Date(alias.createdAtMs).toISOString(),
  updated_at: new Date(alias.updatedAtMs).toISOString(),
});

type Services = Pick<Dependencies, "aliases" | "aliasEditor" | "inference">;
type Context = RequestContext<unknown, AccountCaller>;

const workspaceIdOf = ({ caller }: Context): string => caller.workspace.id;

const referenceOf = (context: Context) => ({
  workspaceId: workspaceIdOf(context),
  name: context.param("name").toLowerCase(),
});

/**
 * Refuses a target that no request could be served with: ids that the catalog does not have, and
 * names, which do not refer to each other. Throws `bad_request`.
 */
function checkTarget(
  target: AliasTarget,
  { inference, workspaceId }: Pick<Dependencies, "inference"> & { workspaceId: string },
): void {
  const { named } = inference.catalog(workspaceId);
  const catalog = { ...inference.catalog(), named: new Map<string, AliasTarget>() };
  for (const id of modelsOfAlias(target)) {
    const { base } = splitShortcuts(id);
    const isModel = [id, base].some((one) => findModel(catalog, one) !== undefined);
    if (named?.has(base.toLowerCase()) !== true && (isModel || catalog.unknown?.find(base)))
      continue;
    const why = named?.has(base.toLowerCase())
      ? "is a name itself; send the models that it means"
      : "is not in the catalog; GET /models lists what is";
    throw badField("target", `${JSON.stringify(id)} ${why}.`);
  }
}

/** Creates an alias, in force for the very next request that names it. */
export const createAlias = defineEndpoint({
  ...forPresets,
  method: "POST",
  idempotent: true,
  path: "/aliases",
  access: writesPresets,
  summary: "Create an alias.",
  description:
    "A name that the workspace's requests may send as `model`, in every dialect. It takes precedence over a name of the operator's, " +
    `and means nothing in other workspaces. At most ${aliasesMax} in a workspace. ` +
    "Limits of a key count for the models that the name means.",
  bodyBytesMax: accountBodyBytesMax,
  body: newAliasSchema,
  response: aliasObjectSchema,
  async handle(context, { aliasEditor, inference }: Services) {
    const { name, target, description } = context.body;
    const workspaceId = workspaceIdOf(context);
    checkTarget(target, { inference, workspaceId });
    const alias = await aliasEditor.create({
      workspaceId,
      name: name.toLowerCase(),
      target,
      description: description ?? null,
    });
    context.changed = alias.name;
    return context.json(aliasObject(alias));
  },
});

export const listAliases = defineEndpoint({
  ...forPresets,
  method: "GET",
  path: "/aliases",
  access: readsPresets,
  summary: "List aliases.",
  description:
    "Those of the workspace, newest first; GET /models lists the operator's too. Without limit, returns all; with limit, returns " +
    "next_cursor, to send as cursor for the next page.",
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(aliasObjectSchema()),
      ...placeFields(),
    }),
  handle(context, { aliases }: Services) {
    const { data, place } = pageOf(
      aliases.aliasesOf(workspaceIdOf(context)),
      checkBody(pageQuery, Object.fromEntries(context.query)),
      {
        idOf: ({ name }) => name,
        order: {
          rankOf: ({ createdAtMs, name }) => timeRank(createdAtMs, name),
          compare: descending,
        },
      },
    );
    return context.json({ object: "list", data: data.map(aliasObject), ...place });
  },
});

export const getAlias = defineEndpoint({
  ...forPresets,
  method: "GET",
  path: "/aliases/:name",
  access: readsPresets,
  summary: "Show an alias.",
  response: aliasObjectSchema,
  handle: (context, { aliasEditor }: Services) =>
    context.json(aliasObject(aliasEditor.find(referenceOf(context)))),
});

/** Changes what an alias means, in force for the very next request that names it. */
export const changeAlias = defineEndpoint({
  ...forPresets,
  method: "PATCH",
  path: "/aliases/:name",
  access: writesPresets,
  summary: "Change an alias.",
  bodyBytesMax: accountBodyBytesMax,
  body: z.record(z.string(), z.unknown()),
  rawBody: aliasChangesSchema,
  response: aliasObjectSchema,
  async handle(context, { aliasEditor, inference }: Services) {
    const reference = referenceOf(context);
    aliasEditor.find(reference);
    refuseUnknownFields(aliasChangesSchema, context.body);
    const changes = checkBody(aliasChangesSchema, context.body);
    if (changes.target !== undefined) checkTarget(changes.target, { inference, ...reference });
    return context.json(aliasObject(await aliasEditor.change(reference, changes)));
  },
});

export const deleteAlias = defineEndpoint({
  ...forPresets,
  method: "DELETE",
  path: "/aliases/:name",
  access: writesPresets,
  summary: "Delete an alias.",
  response: () => z.object({ deleted: z.literal(true), name: z.string() }),
  async handle(context, { aliasEditor }: Services) {
    const reference = referenceOf(context);
    await aliasEditor.remove(reference);
    return context.json({ deleted: true, name: reference.name });
  },
});
