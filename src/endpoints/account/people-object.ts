import { z } from "zod";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { NarrowedKey } from "../../identity/keys/management-keys.ts";
import type { Invitation } from "../../identity/people/links/invitations.ts";
import type { Member, Organization } from "../../identity/people/organizations.ts";
import type {
  Person,
  SessionCaller,
  SessionRecord,
} from "../../identity/people/sign-in/sessions.ts";
import type { MadeKeys } from "../../identity/workspaces/revoke-credentials.ts";
import { planIds, type Workspace } from "../../identity/workspaces/workspace-store.ts";
import { roles } from "../../identity/people/roles.ts";

const roleField = z.enum(roles);

/** The public record of a user. */
export const userObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("user"),
      name: z.string(),
      email: z.string(),
      email_verified: z.boolean(),
      operator: z.boolean(),
    })
    .meta({ id: "User" }),
);

/** Returns the record of a user. */
const userObject = ({
  id,
  name,
  email,
  emailVerified,
  operator,
}: Person): AnswerOf<typeof userObjectSchema> => ({
  id,
  object: "user",
  name,
  email,
  email_verified: emailVerified,
  operator,
});

/** The public record of a workspace, as one of its users sees it. */
export const workspaceObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("workspace"),
      name: z.string(),
      plan: z.enum(planIds),
      role: roleField,
      organization_id: z.string().nullable(),
      created_at: z.string(),
    })
    .meta({ id: "Workspace" }),
);

/** Returns the record of a workspace for a user with this role. */
export const workspaceObject = (
  workspace: Workspace,
  role: Organization["role"],
): AnswerOf<typeof workspaceObjectSchema> => ({
  id: workspace.id,
  object: "workspace",
  name: workspace.name,
  plan: workspace.plan,
  role,
  organization_id: workspace.organizationId ?? null,
  created_at: new Date(workspace.createdAtMs).toISOString(),
});

/** The session of a request: the person, the workspace, and what that person may do there. */
export const currentSessionSchema = lazily(() =>
  z
    .object({
      object: z.literal("session"),
      id: z.string(),
      expires_at: z.string(),
      user: userObjectSchema(),
      workspace: workspaceObjectSchema(),
      scopes: z.array(z.string()),
      barred_from: z
        .string()
        .nullable()
        .describe(
          "Name of the organisation that the session is kept out of, because it requires a second factor that the user lacks.",
        ),
      features: z
        .object({
          card_payments: z.boolean(),
          referrals: z.boolean(),
        })
        .describe("Which optional parts the operator has set up."),
    })
    .meta({ id: "CurrentSession" }),
);

/** Returns the record of a request's session, and which optional parts the installation has. */
export const currentSession = (
  { session, user, workspace, role, scopes, barredFrom }: SessionCaller,
  features: AnswerOf<typeof currentSessionSchema>["features"],
): AnswerOf<typeof currentSessionSchema> => ({
  object: "session",
  id: session.id,
  expires_at: new Date(session.expiresAtMs).toISOString(),
  user: userObject(user),
  workspace: workspaceObject(workspace, role),
  scopes: [...scopes],
  barred_from: barredFrom ?? null,
  features,
});

/** A session of a user. */
export const sessionObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("session"),
      created_at: z.string(),
      updated_at: z.string(),
      expires_at: z.string(),
      address: z.string().nullable(),
      user_agent: z.string().nullable(),
      current: z.boolean(),
    })
    .meta({ id: "Session" }),
);

/** Returns the record of a session, marking the one that asks. */
export const sessionObject = (
  record: SessionRecord,
  currentId: string,
): AnswerOf<typeof sessionObjectSchema> => ({
  id: record.id,
  object: "session",
  created_at: record.createdAt,
  updated_at: record.updatedAt,
  expires_at: record.expiresAt,
  address: record.address || null,
  user_agent: record.userAgent || null,
  current: record.id === currentId,
});

/** The public record of an organisation, as one of its members sees it. */
export const organizationObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("organization"),
      name: z.string(),
      workspace_id: z.string(),
      role: roleField,
      second_factor_required: z
        .boolean()
        .describe("Whether members need a second factor to enter its workspace."),
      created_at: z.string(),
    })
    .meta({ id: "Organization" }),
);

/** Returns the record of an organisation. */
export const organizationObject = (
  organization: Organization,
): AnswerOf<typeof organizationObjectSchema> => ({
  id: organization.id,
  object: "organization",
  name: organization.name,
  workspace_id: organization.workspaceId,
  role: organization.role,
  second_factor_required: organization.secondFactorRequired,
  created_at: new Date(organization.createdAtMs).toISOString(),
});

/** A member of an organisation. */
export const memberObjectSchema = lazily(() =>
  z
    .object({
      object: z.literal("organization_member"),
      user_id: z.string(),
      name: z.string(),
      email: z.string(),
      role: roleField,
      second_factor: z
        .boolean()
        .describe(
          "Whether a password alone does not sign this member in: a code follows it, or passkeys and OpenID are used.",
        ),
      joined_at: z.string(),
    })
    .meta({ id: "Member" }),
);

/** Returns the record of a member. */
export const memberObject = (member: Member): AnswerOf<typeof memberObjectSchema> => ({
  object: "organization_member",
  user_id: member.userId,
  name: member.name,
  email: member.email,
  role: member.role,
  second_factor: member.secondFactor,
  joined_at: new Date(member.joinedAtMs).toISOString(),
});

/** A management key that lost scopes with its creator's role. */
export const narrowedKeySchema = lazily(() =>
  z.object({
    object: z.literal("management_key"),
    id: z.string(),
    name: z.string(),
    label: z.string(),
    scopes: z.array(z.string()).describe("Scopes that the key keeps; without any it is revoked."),
    lost_scopes: z.array(z.string()).describe("Scopes that the key lost."),
  }),
);

/** Returns the record of such a key. */
export const narrowedKeyObject = ({
  key: { id, name, label, scopes },
  lost,
}: NarrowedKey): AnswerOf<typeof narrowedKeySchema> => ({
  object: "management_key",
  id,
  name,
  label,
  scopes: [...scopes],
  lost_scopes: [...lost],
});

/** A key that a person created in a workspace. */
export const madeKeySchema = lazily(() =>
  z.object({
    object: z.enum(["llm_key", "management_key"]),
    id: z.string(),
    hash: z.string().optional().describe("The id by which paths name an LLM key."),
    name: z.string(),
    label: z.string(),
    workspace_id: z.string(),
    created_at: z.string(),
  }),
);

/** Returns the records of such keys. */
export const madeKeyObjects = ({
  llmKeys,
  managementKeys,
}: MadeKeys): AnswerOf<typeof madeKeySchema>[] => [
  ...managementKeys.map(({ id, name, label, workspaceId, createdAtMs }) => ({
    object: "management_key" as const,
    id,
    name,
    label,
    workspace_id: workspaceId,
    created_at: new Date(createdAtMs).toISOString(),
  })),
  ...llmKeys.map(({ id, hash, name, label, workspaceId, createdAtMs }) => ({
    object: "llm_key" as const,
    id,
    hash,
    name,
    label,
    workspace_id: workspaceId,
    created_at: new Date(createdAtMs).toISOString(),
  })),
];

/** An open invitation, without its link. */
export const invitationObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("invitation"),
      email: z.string(),
      role: roleField,
      inviter_user_id: z.string(),
      created_at: z.string(),
      expires_at: z.string(),
    })
    .meta({ id: "Invitation" }),
);

/** Returns the record of an invitation. */
export const invitationObject = (
  invitation: Invitation,
): AnswerOf<typeof invitationObjectSchema> => ({
  id: invitation.id,
  object: "invitation",
  email: invitation.email,
  role: invitation.role,
  inviter_user_id: invitation.inviterUserId,
  created_at: new Date(invitation.createdAtMs).toISOString(),
  expires_at: new Date(invitation.expiresAtMs).toISOString(),
});
