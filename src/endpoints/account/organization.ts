import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { mailOutcomes, type Invitation } from "../../identity/people/links/invitations.ts";
import {
  keysMadeBy,
  revokedKinds,
  revokeKeysMadeBy,
  type RevokedKind,
  type MadeKeyParts,
} from "../../identity/workspaces/revoke-credentials.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { endConnectionsOf } from "../consent/tell-connection.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  atMost,
  emailField,
  forSessions,
  nameField,
  neverCached,
  sessionOf,
} from "./account-fields.ts";
import { ascending, pageOf, pageQuery, placeFields, timeRank } from "./list-pages.ts";
import {
  invitationObject,
  invitationObjectSchema,
  memberObject,
  memberObjectSchema,
  madeKeyObjects,
  madeKeySchema,
  narrowedKeyObject,
  narrowedKeySchema,
  organizationObject,
  organizationObjectSchema,
} from "./people-object.ts";
import { assertNothingLeft } from "../session/own-account.ts";
import { roles, scopesOf } from "../../identity/people/roles.ts";

const nameSchema = z.object({ name: nameField });

/** Returns the organisation of the path, and the caller as its member. */
const standingOf = (
  context: RequestContext<unknown, SessionCaller>,
): { organizationId: string; userId: string } => ({
  organizationId: context.param("id"),
  userId: sessionOf(context).user.id,
});

/** Creates an organisation, which the caller owns. */
export const createOrganization = defineEndpoint({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/organizations",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create an organisation.",
  body: nameSchema,
  response: organizationObjectSchema,
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const organization = await people.organizations.create({
      userId: sessionOf(context).user.id,
      name: context.body.name,
    });
    context.changed = organization.id;
    context.changedIn = organization.workspaceId;
    return context.json(organizationObject(organization));
  },
});

export const listOrganizations = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/organizations",
  summary: "List organisations.",
  response: () =>
    z.object({ object: z.literal("list"), data: z.array(organizationObjectSchema()) }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const organizations = await people.organizations.of(sessionOf(context).user.id);
    return context.json({ object: "list", data: organizations.map(organizationObject) });
  },
});

export const getOrganization = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id",
  summary: "Show an organisation.",
  response: organizationObjectSchema,
  async handle(context, { people }: Pick<Dependencies, "people">) {
    return context.json(organizationObject(await people.organizations.find(standingOf(context))));
  },
});

const changeSchema = z
  .strictObject({
    name: nameField.optional(),
    second_factor_required: z
      .boolean("must be true or false")
      .optional()
      .describe(
        "Lets only members with a second factor enter the workspace, from their next request on. For owners who have one. " +
          "Keys work as before.",
      ),
  })
  .refine((change) => Object.keys(change).length > 0, {
    message: "name or second_factor_required is required",
    path: ["name"],
  });

/** Renames an organisation, or requires a second factor of its members. */
export const changeOrganization = defineEndpoint({
  ...forSessions,
  method: "PATCH",
  path: "/organizations/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change an organisation.",
  body: changeSchema,
  response: organizationObjectSchema,
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const organization = await people.organizations.findManaged(standingOf(context));
    const { name = organization.name, second_factor_required: required } = context.body;
    context.changedIn = organization.workspaceId;
    if (required !== undefined) {
      const { id: userId } = sessionOf(context).user;
      await people.organizations.requireSecondFactor(organization, userId, required);
    }
    if (name !== organization.name) await people.organizations.rename(organization.id, name);
    const secondFactorRequired = required ?? organization.secondFactorRequired;
    return context.json(organizationObject({ ...organization, name, secondFactorRequired }));
  },
});

const deletionSchema = z.strictObject({
  confirm: z
    .boolean("must be true or false")
    .default(false)
    .describe("Confirms that the remaining credits are given up."),
});

export const deleteOrganization = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Delete an organisation.",
  description:
    "For owners only. Members and invitations are deleted with it, and its workspace is closed: its keys are deleted, " +
    "its records remain, and its credits are given up. If credits remain, confirm is required.",
  body: deletionSchema,
  bodyOptional: true,
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Pick<Dependencies, "ledger" | "people" | "userEditor">) {
    const standing = standingOf(context);
    const { id, role, workspaceId } = await deps.people.organizations.find(standing);
    context.changedIn = workspaceId;
    if (role === "owner")
      await assertNothingLeft(deps, [workspaceId], context.body.confirm ?? false);
    await deps.people.organizations.dissolve(standing);
    await deps.userEditor.close(workspaceId);
    return context.json({ deleted: true, id });
  },
});

export const listMembers = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id/members",
  summary: "List the members of an organisation.",
  description:
    "Returns members by the time they joined, oldest first. Without limit, returns all; with limit, returns " +
    "next_cursor, to send as cursor for the next page.",
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(memberObjectSchema()),
      ...placeFields(),
    }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const { id } = await people.organizations.find(standingOf(context));
    const { data, place } = pageOf(
      await people.organizations.members(id),
      checkBody(pageQuery, Object.fromEntries(context.query)),
      {
        idOf: ({ userId }) => userId,
        order: {
          rankOf: ({ joinedAtMs, userId }) => timeRank(joinedAtMs, userId),
          compare: ascending,
        },
      },
    );
    return context.json({ object: "list", data: data.map(memberObject), ...place });
  },
});

const revokedInvitationsField = () =>
  z
    .array(invitationObjectSchema())
    .describe(
      "Invitations of this person that were withdrawn, since the person may not send them any more.",
    );

const roleSchema = z.object({ role: z.enum(roles, `must be one of ${roles.join(", ")}`) });

/** Changes a member's role, in force with their next request. */
export const changeMember = defineEndpoint({
  ...forSessions,
  method: "PATCH",
  path: "/organizations/:id/members/:user_id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change a member's role.",
  description:
    "Admins can change admins and members; only owners can appoint or demote owners. The last owner cannot be demoted. " +
    "Management keys that the person created there lose the scopes that the new role lacks (narrowed_keys), and open " +
    "invitations that it does not allow are withdrawn (revoked_invitations).",
  body: roleSchema,
  response: () =>
    memberObjectSchema().extend({
      narrowed_keys: z
        .array(narrowedKeySchema())
        .describe("Management keys of this person that lost scopes."),
      revoked_invitations: revokedInvitationsField(),
    }),
  async handle(
    context,
    { people, managementKeyEditor }: Pick<Dependencies, "people" | "managementKeyEditor">,
  ) {
    const { workspaceId } = await people.organizations.find(standingOf(context));
    context.changedIn = workspaceId;
    const change = { member: context.param("user_id"), role: context.body.role };
    const { member, withdrawn } = await people.organizations.changeRole(
      standingOf(context),
      change,
    );
    // Repeating the request completes what was interrupted here.
    const narrowed = await managementKeyEditor.narrow(
      { workspaceId, creatorUserId: member.userId },
      { bound: scopesOf(member.role), reason: "The person who made it is no admin any more." },
    );
    return context.json({
      ...memberObject(member),
      narrowed_keys: narrowed.map(narrowedKeyObject),
      revoked_invitations: withdrawn.map(invitationObject),
    });
  },
});

const revokeField = z
  .enum(revokedKinds, `must be one of ${revokedKinds.join(", ")}`)
  .optional()
  .describe(
    "Keys that this person created in the organisation and that end: only management keys, all keys, or none.",
  );
const removalSchema = z.object({ revoke_keys: revokeField });

/**
 * Returns which keys are revoked with a member. Members who leave keep no key of the organisation;
 * those who remove others choose which ones end.
 */
function revokedKindOf(
  { body, query }: RequestContext<z.infer<typeof removalSchema>>,
  leaves: boolean,
): RevokedKind {
  const which =
    body.revoke_keys ??
    checkBody(removalSchema, Object.fromEntries(query)).revoke_keys ??
    "management";
  if (which !== "none" || !leaves) return which;
  throw new GatewayError(
    "forbidden",
    "revoke_keys: none is for owners and admins who remove another person.",
    { param: "revoke_keys" },
  );
}

/**
 * Removes a member. Where an earlier removal was interrupted before their keys were revoked,
 * repeating it revokes them.
 */
async function takeOut(
  deps: MadeKeyParts & Pick<Dependencies, "people">,
  standing: ReturnType<typeof standingOf>,
  { userId, workspaceId }: { userId: string; workspaceId: string },
): Promise<Invitation[]> {
  try {
    return await deps.people.organizations.remove(standing, userId);
  } catch (error) {
    const { llmKeys, managementKeys } = await keysMadeBy(deps, { workspaceId, userId });
    const isUnfinished =
      error instanceof GatewayError &&
      error.code === "not_found" &&
      llmKeys.length + managementKeys.length > 0;
    if (!isUnfinished) throw error;
    return [];
  }
}

/**
 * Removes a member, or lets one leave. Their management keys are revoked; other keys belong to the
 * organisation and stay.
 */
export const removeMember = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id/members/:user_id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Remove a member or leave an organisation.",
  description:
    "The member's sessions lose access to the workspace with their next request. Management keys that the person " +
    "created there are revoked, unless revoke_keys, in the body or the query, says otherwise. keys_in_force lists the " +
    "keys that still work. Open invitations that the person sent are withdrawn.",
  query: removalSchema,
  body: removalSchema,
  bodyOptional: true,
  response: () =>
    z.object({
      deleted: z.literal(true),
      user_id: z.string(),
      revoked_keys: z.array(madeKeySchema()),
      keys_in_force: z.array(madeKeySchema()),
      revoked_invitations: revokedInvitationsField(),
    }),
  async handle(
    context,
    deps: MadeKeyParts & Pick<Dependencies, "people" | "security" | "consent" | "teamStore">,
  ) {
    const userId = context.param("user_id");
    const standing = standingOf(context);
    const which = revokedKindOf(context, userId === standing.userId);
    const { workspaceId } = await deps.people.organizations.find(standing);
    context.changedIn = workspaceId;
    const withdrawn = await takeOut(deps, standing, { userId, workspaceId });
    await endConnectionsOf(context, deps, {
      workspaceId,
      userId,
      reason: "its person is no longer a member",
    });
    await deps.teamStore.removeFromAll({ workspaceId, userId });
    const { revoked, left } = await revokeKeysMadeBy(deps, { workspaceId, userId, which });
    return context.json({
      deleted: true,
      user_id: userId,
      revoked_keys: madeKeyObjects(revoked),
      keys_in_force: madeKeyObjects(left),
      revoked_invitations: withdrawn.map(invitationObject),
    });
  },
});

const inviteSchema = z.object({
  email: emailField,
  role: z.enum(roles, `must be one of ${roles.join(", ")}`).default("member"),
});

/** Invites a person. The link is mailed where mail is configured, and shown only in this answer. */
export const inviteMember = defineEndpoint({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/organizations/:id/invitations",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Invite a person to an organisation.",
  description:
    "The link works once, for one week, and only for this address. It replaces an open invitation for the same address. " +
    "If mail is configured, the link is mailed to the address, and mail reports the result. You can also hand over the " +
    "link in url yourself. Answers 409 for a member. The link ends if the role of the person who sent it no longer allows it.",
  body: inviteSchema,
  response: () =>
    z.object({ url: z.string(), mail: z.enum(mailOutcomes), data: invitationObjectSchema() }),
  async handle(context, { people, publicUrl }: Pick<Dependencies, "people" | "publicUrl">) {
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
    await people.organizations.assertNoMember(id, email);
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
export const listInvitations = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id/invitations",
  summary: "List open invitations.",
  response: () => z.object({ object: z.literal("list"), data: z.array(invitationObjectSchema()) }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const { id } = await people.organizations.findManaged(standingOf(context));
    return context.json({
      object: "list",
      data: (await people.invitations.list(id)).map(invitationObject),
    });
  },
});

/** Withdraws an invitation; its link stops working at once. */
export const revokeInvitation = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id/invitations/:invitation_id",
  summary: "Withdraw an invitation.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
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

export const acceptInvitation = defineEndpoint({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/invitations/accept",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Accept an invitation.",
  description:
    "Takes the token of the invitation's link. The account must have the e-mail address that was invited.",
  body: acceptSchema,
  response: organizationObjectSchema,
  async handle(context, { people }: Pick<Dependencies, "people">) {
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
