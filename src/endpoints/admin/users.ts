import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { Organization } from "../../identity/people/organizations.ts";
import type { SessionRecord } from "../../identity/people/sign-in/sessions.ts";
import type { SignInWays, UserRecord } from "../../identity/people/user-store.ts";
import { dayMs, isoOrNull } from "../../platform/kernel/clock.ts";
import { accountBodyBytesMax, neverCached } from "../account/account-fields.ts";
import {
  type RevokedKind,
  revokeKeysMadeBy,
  revokedKinds,
  type MadeKeyParts,
} from "../../identity/workspaces/revoke-credentials.ts";
import { badField } from "../../platform/kernel/errors.ts";
import {
  madeKeyObjects,
  madeKeySchema,
  organizationObject,
  organizationObjectSchema,
} from "../account/people-object.ts";
import { deleteWithKeys } from "../session/own-account.ts";
import { withdrawRightsOf } from "../keys/operator-rights.ts";
import { endConnectionsOf } from "../consent/tell-connection.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  forOperators,
  operatorOf,
  pageFields,
  pageObject,
  pageSchema,
  searchField,
  truthField,
} from "./admin-fields.ts";

/** A user as operators see one. */
const adminUserSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("user"),
      name: z.string(),
      email: z.string(),
      operator: z.boolean(),
      blocked: z.boolean(),
      blocked_at: z.string().nullable(),
      created_at: z.string(),
      last_signed_in_at: z.string().nullable(),
      workspace_id: z.string().nullable(),
    })
    .meta({ id: "AdminUser" }),
);

/** Returns the record of a user. */
const adminUser = (user: UserRecord): AnswerOf<typeof adminUserSchema> => ({
  id: user.id,
  object: "user",
  name: user.name,
  email: user.email,
  operator: user.operator,
  blocked: user.blockedAtMs !== null,
  blocked_at: isoOrNull(user.blockedAtMs),
  created_at: new Date(user.createdAtMs).toISOString(),
  last_signed_in_at: isoOrNull(user.lastSignedInAtMs),
  workspace_id: user.workspaceId,
});

/** A user with their sign-in methods, sessions and organisations. */
const adminUserDetailsSchema = lazily(() =>
  adminUserSchema().extend({
    sign_in: z.object({ password: z.boolean(), passkeys: z.int(), providers: z.array(z.string()) }),
    sessions: z.array(
      z.object({
        id: z.string(),
        created_at: z.string(),
        updated_at: z.string(),
        expires_at: z.string(),
        address: z.string().nullable(),
        user_agent: z.string().nullable(),
      }),
    ),
    organizations: z.array(organizationObjectSchema()),
  }),
);

/** Returns the full record of a user. */
const adminUserDetails = (
  user: UserRecord,
  {
    ways,
    sessions,
    organizations,
  }: {
    ways: SignInWays;
    sessions: readonly SessionRecord[];
    organizations: readonly Organization[];
  },
): AnswerOf<typeof adminUserDetailsSchema> => ({
  ...adminUser(user),
  sign_in: ways,
  sessions: sessions.map((session) => ({
    id: session.id,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    expires_at: session.expiresAt,
    address: session.address || null,
    user_agent: session.userAgent || null,
  })),
  organizations: organizations.map(organizationObject),
});

/** Days without signing up or in after which a user counts as stale. */
const staleDays = 90;

const querySchema = z.object({
  ...pageFields,
  search: searchField,
  operator: truthField,
  blocked: truthField,
  include_stale: truthField,
});

export const listUsers = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/users",
  summary: "List or search users (operators).",
  description:
    "Newest first. search matches part of a name or an e-mail address, ignoring case. include_stale=false omits users " +
    `who have neither visited nor signed in for ${staleDays} days.`,
  query: querySchema,
  response: () => pageSchema(adminUserSchema()),
  async handle(context, { people, clock }: Pick<Dependencies, "people" | "clock">) {
    const { include_stale: includeStale = true, ...query } = checkBody(
      querySchema,
      Object.fromEntries(context.query),
    );
    const activeSinceMs = includeStale ? undefined : clock.nowMs() - staleDays * dayMs;
    const { users, total } = await people.users.list({ ...query, activeSinceMs });
    return context.json(pageObject(users.map(adminUser), { total, offset: query.offset }));
  },
});

/** Shows one user with their sign-in methods, sessions and organisations. */
export const getUser = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/users/:id",
  summary: "Show a user (operators).",
  response: adminUserDetailsSchema,
  async handle(
    context,
    { people, userEditor, clock }: Pick<Dependencies, "people" | "userEditor" | "clock">,
  ) {
    const user = await userEditor.find(context.param("id"));
    const [ways, sessions, organizations] = await Promise.all([
      people.users.waysOf(user.id),
      people.sessions.list(user.id, clock.nowMs()),
      people.organizations.of(user.id),
    ]);
    return context.json(adminUserDetails(user, { ways, sessions, organizations }));
  },
});

const changeSchema = z.strictObject({
  operator: z
    .boolean("must be true or false")
    .optional()
    .describe("Whether the user is an operator of the service."),
  blocked: z
    .boolean("must be true or false")
    .optional()
    .describe("Whether the user and the keys of the personal workspace are blocked."),
  revoke_keys: z
    .enum(revokedKinds, `must be one of ${revokedKinds.join(", ")}`)
    .optional()
    .describe(
      "With blocked: true, the keys that this person created in organisations and that end: only management keys, all " +
        "keys, or none. Default none.",
    ),
});

/** What changes a user, with the keys and connections that they made. */
type ChangingUsers = MadeKeyParts &
  Pick<Dependencies, "operatorWorkspaceId" | "people" | "userEditor" | "security" | "consent">;

/**
 * Revokes keys that a person created in their organisations; returns those and the keys that still
 * work.
 */
async function revokeInOrganizations(
  deps: MadeKeyParts & Pick<Dependencies, "people">,
  { userId, which }: { userId: string; which: RevokedKind },
) {
  const outcomes = [];
  for (const { workspaceId } of await deps.people.organizations.of(userId))
    outcomes.push(await revokeKeysMadeBy(deps, { workspaceId, userId, which }));
  return {
    revoked_keys: outcomes.flatMap(({ revoked }) => madeKeyObjects(revoked)),
    keys_in_force: outcomes.flatMap(({ left }) => madeKeyObjects(left)),
  };
}

/** Throws `bad_request` where keys are to be revoked without blocking their person. */
function assertBlocks({ blocked, revoke_keys: which }: z.infer<typeof changeSchema>): void {
  if (which === undefined || blocked === true) return;
  throw badField("revoke_keys", "goes with blocked: true only.");
}

/** Blocks or unblocks a user, or makes them an operator or not. */
export const changeUser = defineEndpoint({
  ...forOperators,
  method: "PATCH",
  path: "/admin/users/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change a user's access (operators).",
  description:
    "Blocks or unblocks a user, or grants or withdraws operator rights. Takes effect with the next request. Blocking " +
    "ends every session of the user and every app that the user connected, and refuses the keys of the personal " +
    "workspace until the user is unblocked. Keys that the user created in organisations work on unless revoke_keys ends " +
    "them; the answer to blocked: true lists them in revoked_keys and keys_in_force. A blocked or withdrawn operator's " +
    "keys lose an operator's rights, and do not regain them. The last operator who is not blocked cannot be blocked or " +
    "withdrawn.",
  body: changeSchema,
  response: () =>
    adminUserSchema().extend({
      revoked_keys: z.array(madeKeySchema()).optional(),
      keys_in_force: z.array(madeKeySchema()).optional(),
    }),
  async handle(context, deps: ChangingUsers) {
    assertBlocks(context.body);
    const { revoke_keys: which = "none", ...changes } = context.body;
    const user = await deps.userEditor.change(
      context.param("id"),
      changes,
      operatorOf(context, deps),
    );
    if (changes.operator === false || changes.blocked === true)
      await withdrawRightsOf(context, deps, user.id);
    if (changes.blocked !== true) return context.json(adminUser(user));
    await endConnectionsOf(context, deps, { userId: user.id, reason: "its person was blocked" });
    const keys = await revokeInOrganizations(deps, { userId: user.id, which });
    return context.json({ ...adminUser(user), ...keys });
  },
});

export const endUserSessions = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/users/:id/sessions",
  summary: "End all sessions of a user (operators).",
  response: () => z.object({ deleted: z.literal(true), count: z.int() }),
  async handle(context, { people, userEditor }: Pick<Dependencies, "people" | "userEditor">) {
    const { id } = await userEditor.find(context.param("id"));
    return context.json({ deleted: true, count: await people.sessions.revokeAll(id) });
  },
});

export const removeSecondFactor = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/users/:id/two-factor",
  summary: "Remove a user's second factor (operators).",
  description:
    "Removes the authenticator app and its backup codes. The user then signs in with the password alone until another " +
    "app is set up. Sessions continue. Verify the identity of the user first. Answers 404 if the user has no second " +
    "factor.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { userEditor }: Pick<Dependencies, "userEditor">) {
    const id = context.param("id");
    await userEditor.removeSecondFactor(id);
    return context.json({ deleted: true, id });
  },
});

export const issuePasswordReset = defineEndpoint({
  ...forOperators,
  method: "POST",
  idempotent: true,
  path: "/admin/users/:id/password-reset",
  summary: "Create a password reset link for a user (operators).",
  description:
    "The link is shown once, works once, for one day, and replaces the previous link. Hand it over yourself. Using it " +
    "ends every session of the user.",
  response: () => z.object({ url: z.string(), expires_at: z.string() }),
  async handle(context, { people, userEditor }: Pick<Dependencies, "people" | "userEditor">) {
    const { id: userId, email } = await userEditor.find(context.param("id"));
    const { url, expiresAtMs } = await people.recovery.issueReset({ userId, email });
    return context.json(
      { url, expires_at: new Date(expiresAtMs).toISOString() },
      { headers: neverCached },
    );
  },
});

/** Deletes a user and what belongs to them alone. */
export const deleteUser = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/users/:id",
  summary: "Delete a user (operators).",
  description:
    "Deletes the user's sessions, sign-in methods and memberships. The personal workspace, and organisations without " +
    "another member, are closed: their keys are deleted; records and balances remain.",
  response: () =>
    z.object({
      deleted: z.literal(true),
      id: z.string(),
      closed_workspaces: z.array(
        z.object({
          id: z.string(),
          llm_keys: z.int(),
          management_keys: z.int(),
          provider_keys: z.int(),
        }),
      ),
    }),
  async handle(context, deps: ChangingUsers) {
    const { id } = await deps.userEditor.find(context.param("id"));
    const closed = await deleteWithKeys(context, deps, {
      userId: id,
      by: operatorOf(context, deps),
    });
    return context.json({
      deleted: true,
      id,
      closed_workspaces: closed.map(({ workspaceId, llmKeys, managementKeys, providerKeys }) => ({
        id: workspaceId,
        llm_keys: llmKeys,
        management_keys: managementKeys,
        provider_keys: providerKeys,
      })),
    });
  },
});
