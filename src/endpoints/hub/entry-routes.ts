import { z } from "zod";
import type { RequestContext } from "../../http/request-context.ts";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint, type Endpoint } from "../../http/endpoint.ts";
import { reviewStatuses, type EntryKind } from "../../mcp/hub/entry.ts";
import { plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  entryObject,
  promptSchema,
  skillSchema,
  versionSchema,
  versionObject,
} from "./entry-object.ts";
import {
  bodyField,
  categoryField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  lineField,
  listObject,
  listSchema,
  pageFields,
  pageParameters,
  readsHub,
  visibilityField,
  writesHub,
} from "./hub-fields.ts";

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

const deletedSchema = z.object({ deleted: z.literal(true), id: z.string() });

type Kind = Extract<EntryKind, "prompt" | "skill">;

const idOf = (context: RequestContext<unknown>): string => context.param("id");
const schemaOf = (kind: Kind) => (kind === "prompt" ? promptSchema : skillSchema);

function readingRoutes(kind: Kind): readonly Endpoint<Dependencies>[] {
  const base = `/${kind}s`;
  const schema = schemaOf(kind);

  const list = defineEndpoint<Dependencies>({
    ...forHub,
    method: "GET",
    path: base,
    access: readsHub,
    summary: `List ${kind}s.`,
    description:
      "Newest first, without their bodies. scope=workspace, the default, has those of the workspace, public those that every " +
      "workspace sees, starred those that the caller has starred.",
    query: z.object({
      ...pageParameters,
      scope: z.enum(scopes).default("workspace").optional(),
      tag: z.string().optional(),
      category: z.string().optional(),
      status: z.enum(reviewStatuses).optional(),
    }),
    response: listSchema(schema),
    async handle(context, { hub }) {
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

  const show = defineEndpoint<Dependencies>({
    ...forHub,
    method: "GET",
    path: `${base}/:id`,
    access: readsHub,
    summary: `Show a ${kind}.`,
    response: schema,
    async handle(context, { hub }) {
      const caller = hubCaller(context);
      return context.json(entryObject(await hub.entries.find(caller, idOf(context), kind), caller));
    },
  });

  const versions = defineEndpoint<Dependencies>({
    ...forHub,
    method: "GET",
    path: `${base}/:id/versions`,
    access: readsHub,
    summary: `List the versions of a ${kind}.`,
    description: "Newest first; other workspaces see the published one. The last hundred are kept.",
    response: z.object({ object: z.literal("list"), data: z.array(versionSchema) }),
    async handle(context, { hub }) {
      const found = await hub.entries.versions(hubCaller(context), idOf(context), kind);
      return context.json({ object: "list", data: found.map(versionObject) });
    },
  });

  return [list, show, versions];
}

function writingRoutes(kind: Kind): readonly Endpoint<Dependencies>[] {
  const base = `/${kind}s`;
  const schema = schemaOf(kind);

  const remove = defineEndpoint<Dependencies>({
    ...forHub,
    method: "DELETE",
    path: `${base}/:id`,
    access: writesHub,
    summary: `Delete a ${kind} with its versions.`,
    description: "Forks of it stay.",
    response: deletedSchema,
    async handle(context, { hub }) {
      await hub.entries.remove(hubCaller(context), idOf(context), kind);
      return context.json({ deleted: true, id: idOf(context) });
    },
  });

  const starring = ({ starred }: { starred: boolean }) =>
    defineEndpoint<Dependencies>({
      ...forHub,
      method: starred ? "POST" : "DELETE",
      path: `${base}/:id/star`,
      access: writesHub,
      ...(starred ? { idempotent: true } : {}),
      summary: starred ? `Star a ${kind}.` : `Take the star of a ${kind} back.`,
      description: "For the caller's person; the same twice is done once.",
      response: schema,
      async handle(context, { hub }) {
        const caller = hubCaller(context);
        return context.json(
          entryObject(await hub.entries.setStar(caller, idOf(context), { starred, kind }), caller),
        );
      },
    });

  const fork = defineEndpoint<Dependencies, z.infer<typeof forkSchema>>({
    ...forHub,
    method: "POST",
    path: `${base}/:id/fork`,
    access: writesHub,
    idempotent: true,
    bodyBytesMax: hubBodyBytesMax,
    summary: `Copy a ${kind} into the workspace.`,
    description:
      "Private unless visibility says otherwise. It has the version that the caller sees.",
    body: forkSchema,
    bodyOptional: true,
    response: schema,
    async handle(context, { hub }) {
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

/** The routes that prompts and skills have alike: lists, versions, stars and forks. */
export const entryRoutes = (kind: Kind): readonly Endpoint<Dependencies>[] => [
  ...readingRoutes(kind),
  ...writingRoutes(kind),
];
