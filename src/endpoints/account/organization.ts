import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, nameField } from "./account-fields.ts";
import { forSessions, sessionOf } from "./people-fields.ts";
import { assertNothingLeft } from "./session-account.ts";
import { organizationObject, organizationObjectSchema } from "./people-object.ts";

const nameSchema = z.object({ name: nameField });

/** The organisation of the path, as the caller stands in it. */
export const standingOf = (
  context: RequestContext<unknown>,
): { organizationId: string; userId: string } => ({
  organizationId: context.param("id"),
  userId: sessionOf(context).user.id,
});

/** Makes an organisation; whoever makes it owns it. */
export const createOrganization = defineEndpoint<Dependencies, z.infer<typeof nameSchema>>({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/organizations",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Make an organisation with its workspace.",
  body: nameSchema,
  response: organizationObjectSchema,
  async handle(context, { people }) {
    const organization = await people.organizations.create({
      userId: sessionOf(context).user.id,
      name: context.body.name,
    });
    context.changed = organization.id;
    context.changedIn = organization.workspaceId;
    return context.json(organizationObject(organization));
  },
});

/** Lists the organisations of the user. */
export const listOrganizations = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/organizations",
  summary: "List the organisations of the user.",
  response: z.object({ object: z.literal("list"), data: z.array(organizationObjectSchema) }),
  async handle(context, { people }) {
    const organizations = await people.organizations.of(sessionOf(context).user.id);
    return context.json({ object: "list", data: organizations.map(organizationObject) });
  },
});

/** Shows one organisation of the user. */
export const getOrganization = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id",
  summary: "Show one organisation of the user.",
  response: organizationObjectSchema,
  async handle(context, { people }) {
    return context.json(organizationObject(await people.organizations.find(standingOf(context))));
  },
});

/** Renames an organisation. */
export const changeOrganization = defineEndpoint<Dependencies, z.infer<typeof nameSchema>>({
  ...forSessions,
  method: "PATCH",
  path: "/organizations/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Rename an organisation.",
  body: nameSchema,
  response: organizationObjectSchema,
  async handle(context, { people }) {
    const organization = await people.organizations.findManaged(standingOf(context));
    const { name } = context.body;
    context.changedIn = organization.workspaceId;
    await people.organizations.rename(organization.id, name);
    return context.json(organizationObject({ ...organization, name }));
  },
});

const deletionSchema = z.strictObject({
  confirm: z
    .boolean("must be true or false")
    .default(false)
    .describe("Gives up what is left of the credits."),
});

/** Deletes an organisation and closes its workspace. */
export const deleteOrganization = defineEndpoint<Dependencies, z.infer<typeof deletionSchema>>({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Delete an organisation.",
  description:
    "For owners. Members and invitations go with it, and its workspace is closed: keys are deleted, records stay, credits are " +
    "given up, which needs confirm where there are any.",
  body: deletionSchema,
  bodyOptional: true,
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps) {
    const standing = standingOf(context);
    const { id, role, workspaceId } = await deps.people.organizations.find(standing);
    context.changedIn = workspaceId;
    if (role === "owner") await assertNothingLeft(deps, workspaceId, context.body.confirm ?? false);
    await deps.people.organizations.dissolve(standing);
    await deps.userEditor.close(workspaceId);
    return context.json({ deleted: true, id });
  },
});
