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
  "The SKILL.md of an Agent Skill: front matter with name and description, then Markdown.",
);

const newSkillSchema = z.strictObject({
  body: documentField,
  name: lineField(200).optional().describe("Default: the name in the front matter."),
  slug: slugField.optional(),
  tags: tagsField.optional(),
  hub: slugField.optional().describe("Slug of the hub to publish in."),
  visibility: visibilityField
    .optional()
    .describe("Default workspace; a skill in a hub has the visibility of the hub."),
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
  description:
    "Takes an Agent Skills document. The text is stored unchanged and is never executed by the service.",
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
  description: "A changed document, name or tags create a new version.",
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

export const exportSkill = defineEndpoint({
  ...forHub,
  method: "GET",
  path: "/skills/:id/export",
  access: readsHub,
  summary: "Export a skill as a zip archive.",
  description:
    "The archive has a folder with SKILL.md, to unpack into the skills folder of an agent.",
  otherResponseTypes: ["application/zip"],
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const entry = await hub.entries.find(hubCaller(context), context.param("id"), "skill");
    return zipAnswer(context, { bytes: await hub.exportSkill(entry), name: entry.slug ?? "skill" });
  },
});
