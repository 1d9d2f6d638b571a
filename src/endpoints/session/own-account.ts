import { z } from "zod";
import { balanceOf } from "../../billing/ledger/book/account-book.ts";
import { revokeKeysMadeBy } from "../../identity/workspaces/revoke-credentials.ts";
import type { ClosedWorkspace } from "../../identity/people/user-editor.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { usdSixDecimals } from "../../platform/kernel/money.ts";
import { withdrawRightsOf } from "../keys/operator-rights.ts";
import { endConnectionsOf } from "../consent/tell-connection.ts";
import { isFresh, type SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  emailField,
  forSessions,
  passwordField,
  sessionOf,
} from "../account/account-fields.ts";
import { attemptOf } from "./sign-in-flow.ts";

/** What deletes a user with their keys. */
type DeletingDependencies = Pick<
  Dependencies,
  | "operatorWorkspaceId"
  | "llmKeys"
  | "llmKeyEditor"
  | "managementKeys"
  | "managementKeyEditor"
  | "directory"
  | "people"
  | "userEditor"
  | "security"
  | "consent"
  | "clock"
>;

const methodSchema = lazily(() =>
  z.object({
    id: z.string(),
    object: z.literal("sign_in_method"),
    type: z.enum(["password", "passkey", "oidc"]),
    provider: z.string().nullable().describe("Id of the OpenID provider."),
    name: z.string().nullable(),
    created_at: z.string().nullable(),
  }),
);

export const listSignInMethods = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/session/sign-in-methods",
  anywhere: true,
  summary: "List the user's sign-in methods.",
  description:
    "two_factor reports whether the password must be followed by a code of an authenticator app.",
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(methodSchema()),
      two_factor: z.boolean(),
    }),
  async handle(context, { people: { users } }: Pick<Dependencies, "people">) {
    const { methods, twoFactor } = await users.methodsOf(sessionOf(context).user.id);
    const data = methods.map(
      ({ id, type, provider, name, createdAt }): AnswerOf<typeof methodSchema> => ({
        id,
        object: "sign_in_method",
        type,
        provider,
        name,
        created_at: createdAt,
      }),
    );
    return context.json({ object: "list", data, two_factor: twoFactor });
  },
});

/** Removes one way to sign in, never the last one. */
export const unlinkSignInMethod = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/session/sign-in-methods/:id",
  anywhere: true,
  summary: "Remove a sign-in method.",
  description:
    "Removes a password, a passkey or an OpenID provider. Answers 409 for the last method that works here.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { people: { users, settings } }: Pick<Dependencies, "people">) {
    const id = context.param("id");
    await users.unlink({
      userId: sessionOf(context).user.id,
      id,
      providers: settings.oidc.map((provider) => provider.id),
    });
    return context.json({ deleted: true, id });
  },
});

/**
 * Throws unless the caller proves to own the account, by its password or a session that has just
 * begun: an unlocked screen is not enough to take over an account.
 */
async function assertOwner(
  context: RequestContext<unknown, SessionCaller>,
  deps: Pick<Dependencies, "people" | "clock">,
  password: string | undefined,
): Promise<void> {
  const { people, clock } = deps;
  const session = sessionOf(context);
  const { user } = session;
  const hash = await people.users.passwordHashOf(user.id);
  if (hash === undefined) {
    if (isFresh(session, clock.nowMs())) return;
    throw new GatewayError(
      "forbidden",
      "Sign in again first: this needs a session that has just begun.",
    );
  }
  if (password === undefined) throw badField("password", "is required.");
  const attempt = { ...attemptOf(context), email: user.email };
  await people.throttle.count(attempt);
  people.passwords.assertRoom();
  if (!(await people.passwords.verify({ password, hash }))) {
    throw badField("password", "is not that of this account.");
  }
  await people.throttle.succeeded(attempt);
}

/** Throws `conflict` where credits of workspaces would be lost without their owner's consent. */
export async function assertNothingLeft(
  { ledger }: Pick<Dependencies, "ledger">,
  workspaceIds: readonly string[],
  confirm: boolean,
): Promise<void> {
  let balanceNano = 0n;
  for (const id of workspaceIds) {
    await ledger.refresh(id);
    balanceNano += balanceOf(ledger.book.workspace(id));
  }
  const balanceUsd = usdSixDecimals(balanceNano);
  if (confirm || balanceUsd <= 0) return;
  throw new GatewayError(
    "conflict",
    `${balanceUsd} USD of credits would be given up. Send confirm: true to do that.`,
    {
      param: "confirm",
      metadata: { balance_usd: balanceUsd },
    },
  );
}

/**
 * Deletes a user, ends the apps that they connected, and revokes the management keys that they
 * created in organisations that remain.
 */
export async function deleteWithKeys(
  context: RequestContext<unknown>,
  deps: DeletingDependencies,
  { userId, by }: { userId: string; by: string | null },
): Promise<ClosedWorkspace[]> {
  await deps.userEditor.find(userId);
  const organizations = await deps.people.organizations.of(userId);
  const closed = await deps.userEditor.remove(userId, by);
  await withdrawRightsOf(context, deps, userId);
  await endConnectionsOf(context, deps, {
    userId,
    reason: "the account of its person was deleted",
  });
  const gone = new Set(closed.map(({ workspaceId }) => workspaceId));
  for (const { workspaceId } of organizations) {
    if (!gone.has(workspaceId))
      await revokeKeysMadeBy(deps, { workspaceId, userId, which: "management" });
  }
  return closed;
}

const deletionSchema = z.strictObject({
  password: passwordField
    .optional()
    .describe(
      "Current password of the account, if it has one; otherwise the session must be at most 15 minutes old.",
    ),
  confirm: z
    .boolean("must be true or false")
    .default(false)
    .describe("Confirms that the remaining credits of the closed workspaces are given up."),
});

export const deleteAccount = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/session/user",
  anywhere: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Delete the user's account.",
  description:
    "Deletes the account's sessions, sign-in methods and memberships. The personal workspace, and organisations without another " +
    "member, are closed: their keys are deleted, records remain, and credits are given up. In other organisations the account's " +
    "management keys are revoked; LLM keys belong to the organisation and remain.",
  body: deletionSchema,
  bodyOptional: true,
  response: () =>
    z.object({
      deleted: z.literal(true),
      id: z.string(),
      closed_workspaces: z.array(z.string()),
    }),
  async handle(context, deps: DeletingDependencies & Pick<Dependencies, "ledger">) {
    const {
      user: { id },
    } = sessionOf(context);
    const { password, confirm = false } = context.body;
    await assertOwner(context, deps, password);
    await assertNothingLeft(deps, await deps.userEditor.closingWith(id), confirm);
    const closed = await deleteWithKeys(context, deps, { userId: id, by: null });
    return context.json({
      deleted: true,
      id,
      closed_workspaces: closed.map(({ workspaceId }) => workspaceId),
    });
  },
});

const emailSchema = z.strictObject({
  new_email: emailField,
  password: passwordField.optional().describe("Current password of the account, if it has one."),
});

/** Sends a link to a new address, which becomes the account's once the link was used. */
export const changeEmail = defineEndpoint({
  ...forSessions,
  base: "root",
  method: "POST",
  path: "/api/auth/change-email",
  anywhere: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the e-mail address.",
  description:
    "Mails a confirmation link to the new address. The answer does not reveal whether another account has that address. POST " +
    "/api/auth/verify-email takes the token of the link.",
  body: emailSchema,
  response: () => z.object({ requested: z.literal(true) }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    const { new_email: email, password } = context.body;
    deps.people.recovery.assertMail();
    await assertOwner(context, deps, password);
    const { user } = sessionOf(context);
    deps.people.recovery.requestEmailChange({ userId: user.id, oldEmail: user.email, email });
    return context.json({ requested: true });
  },
});
