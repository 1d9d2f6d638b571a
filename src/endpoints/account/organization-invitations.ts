import { z } from "zod";
import { mailOutcomes } from "../../account/people/invitation-mails.ts";
import { roles } from "../../account/people/role.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, atMost, neverCached } from "./account-fields.ts";
import { standingOf } from "./organization.ts";
import { emailField, forSessions, sessionOf } from "./people-fields.ts";
import {
  invitationObject,
  invitationObjectSchema,
  organizationObject,
  organizationObjectSchema,
} from "./people-object.ts";

const inviteSchema = z.object({
  email: emailField,
  role: z.enum(roles, `must be one of ${roles.join(", ")}`).default("member"),
});

/** Invites somebody; the link is mailed where mail is sent, shown in this answer, and never again. */
export const inviteMember = defineEndpoint<Dependencies, z.infer<typeof inviteSchema>>({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/organizations/:id/invitations",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Invite somebody to an organisation.",
  description:
    "The link works once, for a week, and for this address alone. It replaces an open one for the same address. " +
    "Where mail is configured it is sent to the address; mail says what became of that, and the link in url can be handed over " +
    "in any case.",
  body: inviteSchema,
  response: z.object({ url: z.string(), mail: z.enum(mailOutcomes), data: invitationObjectSchema }),
  async handle(context, { people, publicUrl }) {
    const standing = standingOf(context);
    const {
      id,
      role: own,
      name: organizationName,
      workspaceId,
    } = await people.organizations.findManaged(standing);
    context.changedIn = workspaceId;
    const { email, role } = context.body;
    people.organizations.assertMayAssign(own, role);
    const { token, invitation } = await people.invitations.create({
      organizationId: id,
      email,
      role,
      inviterUserId: standing.userId,
    });
    context.changed = `${id} ${invitation.id}`;
    const url = `${publicUrl()}/join?token=${token}`;
    const mail = await people.invitationMails.send({
      invitation,
      organizationName,
      inviter: sessionOf(context).user,
      url,
    });
    return context.json(
      { url, mail, data: invitationObject(invitation) },
      { headers: neverCached },
    );
  },
});

/** Lists the open invitations of an organisation, without their links. */
export const listInvitations = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id/invitations",
  summary: "List the open invitations of an organisation.",
  response: z.object({ object: z.literal("list"), data: z.array(invitationObjectSchema) }),
  async handle(context, { people }) {
    const { id } = await people.organizations.findManaged(standingOf(context));
    return context.json({
      object: "list",
      data: (await people.invitations.list(id)).map(invitationObject),
    });
  },
});

/** Withdraws an invitation; its link is dead at once. */
export const revokeInvitation = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id/invitations/:invitation_id",
  summary: "Withdraw an invitation.",
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { people }) {
    const { id: organizationId, workspaceId } = await people.organizations.findManaged(
      standingOf(context),
    );
    context.changedIn = workspaceId;
    const id = context.param("invitation_id");
    await people.invitations.revoke({ organizationId, id });
    return context.json({ deleted: true, id });
  },
});

const acceptSchema = z.object({
  token: z
    .string("is required and must be a text")
    .min(1, "must not be empty")
    .max(...atMost(200)),
});

/** Accepts an invitation with the account that is signed in. */
export const acceptInvitation = defineEndpoint<Dependencies, z.infer<typeof acceptSchema>>({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/invitations/accept",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Accept an invitation with this account.",
  description:
    "The token is that of the link. Invitations are for one address, which must be the account's.",
  body: acceptSchema,
  response: organizationObjectSchema,
  async handle(context, { people }) {
    const { id: userId, email } = sessionOf(context).user;
    const organization = await people.organizations.accept({
      token: context.body.token,
      userId,
      email,
    });
    context.changed = `${organization.id} ${userId}`;
    context.changedIn = organization.workspaceId;
    return context.json(organizationObject(organization));
  },
});
