import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { entryObject, entryRoutes, skillSchema } from "./entry-routes.ts";
import {
  bodyField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  lineField,
  readsHub,
  slugField,
  tagsField,
  visibilityField,
  writesHub,
} from "./hub-fields.ts";

const documentField = bodyField.describe(
  "SKILL.md as Agent Skills have it: front matter with name and description, then Markdown.",
);

const newSkillSchema = z.strictObject({
  body: documentField,
  name: lineField(200).optional().describe("That of the front matter unless it is named."),
  slug: slugField.optional(),
  tags: tagsField.optional(),
  hub: slugField.optional().describe("Slug of the hub that gets it."),
  visibility: visibilityField
    .optional()
    .describe("workspace unless it is said otherwise; a skill of a hub has the hub's."),
});

const skillChangesSchema = z.strictObject({
  body: documentField.optional(),
  name: lineField(200).optional(),
  slug: slugField.optional(),
  tags: tagsField.optional(),
  visibility: visibilityField.optional(),
});

/** Returns a zip archive as an answer. */
export const zipAnswer = (
  { headers }: RequestContext<unknown>,
  { bytes, name }: { bytes: Uint8Array<ArrayBuffer>; name: string },
): Response =>
  new Response(bytes, {
    headers: {
      ...headers,
      "content-type": "application/zip",
      "content-disposition": `attachment; filename="${name}.zip"`,
    },
  });

/** The routes for lists, versions, stars and forks of skills. */
export const skillRoutes = entryRoutes("skill");

/** Publishes a skill, in a hub or outside of any. */
export const publishSkill = defineEndpoint({
  ...forHub,
  method: "POST",
  path: "/skills",
  access: writesHub,
  idempotent: true,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Publish a skill.",
  description: "An Agent Skills document. Its text is kept as it is and never run here.",
  body: newSkillSchema,
  response: skillSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const entry = await hub.add(caller, { kind: "skill", ...context.body });
    context.changed = entry.id;
    return context.json(entryObject(entry, caller));
  },
});

/** Changes a skill; a different document is a new version. */
export const changeSkill = defineEndpoint({
  ...forHub,
  method: "PATCH",
  path: "/skills/:id",
  access: writesHub,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Change a skill.",
  description: "Another document, name or other tags make a new version.",
  body: skillChangesSchema,
  response: skillSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { slug, visibility, ...changes } = context.body;
    const entry = await hub.entries.find(caller, context.param("id"), "skill");
    const content = await hub.changedContent(entry, changes);
    return context.json(
      entryObject(
        await hub.entries.change(caller, entry.id, { kind: "skill", slug, visibility, content }),
        caller,
      ),
    );
  },
});

/** Exports a skill as a zip archive. */
export const exportSkill = defineEndpoint({
  ...forHub,
  method: "GET",
  path: "/skills/:id/export",
  access: readsHub,
  summary: "Export a skill as a zip archive.",
  description: "A folder with SKILL.md, to unpack where an agent looks for skills.",
  otherResponseTypes: ["application/zip"],
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const entry = await hub.entries.find(hubCaller(context), context.param("id"), "skill");
    return zipAnswer(context, { bytes: await hub.exportSkill(entry), name: entry.slug ?? "skill" });
  },
});
