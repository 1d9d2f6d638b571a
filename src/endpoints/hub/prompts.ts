import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { reviewStatuses, type EntryContent } from "../../mcp/hub/entry.ts";
import { forOperators, operatorOf } from "../admin/admin-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { entryObject, entryRoutes, promptSchema } from "./entry-routes.ts";
import {
  offsetField,
  bodyField,
  categoryField,
  descriptionField,
  forHub,
  hubBodyBytesMax,
  hubCaller,
  limitField,
  lineField,
  listObject,
  namesField,
  tagsField,
  visibilityField,
  writesHub,
} from "./hub-fields.ts";
import { listSchema } from "../account/list-pages.ts";

const modelField = lineField(200);

const newPromptSchema = z.strictObject({
  title: lineField(200),
  description: descriptionField,
  body: bodyField,
  category: categoryField,
  tags: tagsField.optional(),
  platforms: namesField.optional(),
  recommended_agents: namesField.optional(),
  recommended_model: modelField.nullish(),
  visibility: visibilityField
    .default("public")
    .optional()
    .describe("public, the default, requires the approval of an operator."),
});

const promptChangesSchema = z.strictObject({
  title: lineField(200).optional(),
  description: descriptionField.optional(),
  body: bodyField.optional(),
  category: categoryField.optional(),
  tags: tagsField.optional(),
  platforms: namesField.optional(),
  recommended_agents: namesField.optional(),
  recommended_model: modelField.nullish(),
  visibility: visibilityField.optional(),
});

type Changes = z.infer<typeof promptChangesSchema>;

/** Returns the stored fields of a prompt, without those that were not sent. */
const contentIn = ({
  visibility: _,
  recommended_agents,
  recommended_model,
  ...fields
}: Changes): Partial<EntryContent> =>
  Object.fromEntries(
    Object.entries({
      ...fields,
      recommendedAgents: recommended_agents,
      recommendedModel: recommended_model,
    }).filter(([, value]) => value !== undefined),
  );

/** The routes for lists, versions, stars and forks of prompts. */
export const promptRoutes = entryRoutes("prompt");

export const publishPrompt = defineEndpoint({
  ...forHub,
  method: "POST",
  path: "/prompts",
  access: writesHub,
  idempotent: true,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Publish a prompt.",
  description:
    "The workspace can use the prompt immediately, other workspaces after an operator has approved it. The text is stored unchanged " +
    "and is never executed by the service.",
  body: newPromptSchema,
  response: promptSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { visibility = "public", title, description, body, category, ...rest } = context.body;
    const entry = await hub.entries.create(caller, {
      kind: "prompt",
      visibility,
      content: {
        title,
        description,
        body,
        category,
        tags: rest.tags ?? [],
        platforms: rest.platforms ?? [],
        recommendedAgents: rest.recommended_agents ?? [],
        recommendedModel: rest.recommended_model ?? null,
      },
    });
    context.changed = entry.id;
    return context.json(entryObject(entry, caller));
  },
});

/** Changes a prompt; different content is a new version. */
export const changePrompt = defineEndpoint({
  ...forHub,
  method: "PATCH",
  path: "/prompts/:id",
  access: writesHub,
  bodyBytesMax: hubBodyBytesMax,
  summary: "Change a prompt.",
  description:
    "Changed content creates a new version. The new version of a public prompt waits for approval, and other workspaces see the " +
    "approved one until then.",
  body: promptChangesSchema,
  response: promptSchema,
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const caller = hubCaller(context);
    const { visibility } = context.body;
    const entry = await hub.entries.change(caller, context.param("id"), {
      kind: "prompt",
      visibility,
      content: contentIn(context.body),
    });
    return context.json(entryObject(entry, caller));
  },
});

const reviewsQuerySchema = z.object({
  status: z
    .enum(reviewStatuses, `must be one of ${reviewStatuses.join(", ")}`)
    .default("pending_review"),
  limit: limitField(20),
  cursor: z.string().max(100).optional(),
  offset: offsetField,
});

export const listReviews = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/prompts",
  summary: "List public prompts by review state (operators).",
  description: "Returns the newest versions with their bodies, longest waiting first.",
  query: reviewsQuerySchema,
  response: () => listSchema(promptSchema().extend({ workspace_id: z.string() })),
  async handle(context, { hub }: Pick<Dependencies, "hub">) {
    const query = checkBody(reviewsQuerySchema, Object.fromEntries(context.query));
    return context.json(
      listObject(await hub.entries.reviewList(query), (entry) => ({
        // Operators see what the prompt's own workspace sees.
        ...entryObject(entry, { ...entry, administers: false }),
        workspace_id: entry.workspaceId,
      })),
    );
  },
});

const reviewSchema = z.strictObject({
  note: lineField(1_000).nullish().describe("Note to the workspace of the prompt."),
  version: z
    .int("must be a whole number")
    .min(1)
    .optional()
    .describe("Version that was reviewed; answers 409 if there is a newer one."),
});

const reviewing = ({ approve }: { approve: boolean }) =>
  defineEndpoint({
    ...forOperators,
    method: "POST",
    path: `/admin/prompts/:id/${approve ? "approve" : "reject"}`,
    idempotent: true,
    bodyBytesMax: hubBodyBytesMax,
    summary: approve
      ? "Approve a public prompt (operators)."
      : "Reject or withdraw a public prompt (operators).",
    body: reviewSchema,
    bodyOptional: true,
    response: promptSchema,
    async handle(context, dependencies: Pick<Dependencies, "operatorWorkspaceId" | "hub">) {
      const { note, version } = context.body;
      const entry = await dependencies.hub.entries.review(context.param("id"), {
        approve,
        note: note ?? null,
        version,
        by: operatorOf(context, dependencies),
      });
      context.changedIn = entry.workspaceId;
      return context.json(entryObject(entry, { ...entry, administers: false }));
    },
  });

/** Approve and reject public prompts. */
export const approvePrompt = reviewing({ approve: true });
export const rejectPrompt = reviewing({ approve: false });
