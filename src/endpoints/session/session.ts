import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { preferencesMax } from "../../identity/people/people-tables.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  forSessions,
  nameField,
  newPasswordField,
  passwordField,
  sessionOf,
} from "../account/account-fields.ts";
import {
  currentSession,
  currentSessionSchema,
  sessionObject,
  sessionObjectSchema,
} from "../account/people-object.ts";
import { signedIn, signedInSchema } from "./sign-in.ts";
import { answerWith, attemptOf, delegate } from "./sign-in-flow.ts";

export const getSession = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/session",
  anywhere: true,
  summary: "Show the signed-in user and the active workspace.",
  description:
    "A session that is used is extended once a day by this route, together with its cookie.",
  response: currentSessionSchema,
  async handle(
    context,
    deps: Pick<Dependencies, "people" | "referrals" | "payments" | "publicUrl">,
  ) {
    // The library prolongs the session where that is due, and sets the cookie again.
    const { cookies } = await delegate(context, deps, { method: "GET", path: "/get-session" });
    return answerWith(
      context,
      { cookies, location: null, status: 200, body: null },
      currentSession(sessionOf(context), {
        card_payments: deps.payments !== undefined,
        referrals: deps.referrals !== undefined,
      }),
    );
  },
});

const changeSchema = z.strictObject({
  workspace_id: z
    .string()
    .max(200)
    .nullable()
    .optional()
    .describe("Id of the workspace to activate; null selects the personal one."),
  name: nameField.optional().describe("Name of the user."),
});

/** Sets the session's active workspace, or renames the user. */
export const changeSession = defineEndpoint({
  ...forSessions,
  method: "PATCH",
  path: "/session",
  anywhere: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the active workspace or the user's name.",
  body: changeSchema,
  response: () =>
    z.object({
      object: z.literal("session"),
      id: z.string(),
      workspace_id: z.string().nullable(),
    }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const { session, user, workspace } = sessionOf(context);
    const { workspace_id: wanted, name } = context.body;
    if (wanted !== undefined && wanted !== null) {
      const mine = await people.organizations.of(user.id);
      const own =
        workspace.ownerUserId === user.id
          ? workspace.id
          : await people.sessions.personalWorkspaceId(user.id);
      const entered = mine.find(({ workspaceId }) => workspaceId === wanted);
      if (entered !== undefined) await people.organizations.assertMayEnter(entered, user.id);
      if (wanted !== own && entered === undefined) {
        throw new GatewayError(
          "not_found",
          "There is no such workspace among yours. GET /workspaces lists them.",
          {
            param: "workspace_id",
          },
        );
      }
    }
    if (name !== undefined) await people.sessions.renameUser(user.id, name);
    if (wanted !== undefined) await people.sessions.activate(session.id, wanted);
    return context.json({
      object: "session",
      id: session.id,
      workspace_id: wanted === undefined ? workspace.id : wanted,
    });
  },
});

export const listSessions = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/sessions",
  anywhere: true,
  summary: "List the sessions of the user.",
  response: () => z.object({ object: z.literal("list"), data: z.array(sessionObjectSchema()) }),
  async handle(context, { people, clock }: Pick<Dependencies, "people" | "clock">) {
    const { user, session } = sessionOf(context);
    const records = await people.sessions.list(user.id, clock.nowMs());
    return context.json({
      object: "list",
      data: records.map((record) => sessionObject(record, session.id)),
    });
  },
});

/** Ends a session of the user; its next request is refused. */
export const revokeSession = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/sessions/:id",
  anywhere: true,
  summary: "End a session of the user.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const id = context.param("id");
    if (!(await people.sessions.revoke({ userId: sessionOf(context).user.id, id }))) {
      throw new GatewayError(
        "not_found",
        "You have no session with this id. GET /sessions lists them.",
      );
    }
    return context.json({ deleted: true, id });
  },
});

/** Ends every session of the user except the calling one. */
export const revokeOtherSessions = defineEndpoint({
  ...forSessions,
  method: "DELETE",
  path: "/sessions",
  anywhere: true,
  summary: "End every other session of the user.",
  response: () => z.object({ deleted: z.literal(true), count: z.number() }),
  async handle(context, { people }: Pick<Dependencies, "people">) {
    const { user, session } = sessionOf(context);
    return context.json({
      deleted: true,
      count: await people.sessions.revokeOthers({ userId: user.id, keptId: session.id }),
    });
  },
});

const passwordSchema = z.object({
  current_password: passwordField,
  new_password: newPasswordField,
});

/**
 * Changes the password. Every other session ends, and this one continues under a new cookie. A change
 * of the address that waits for its confirmation ends too.
 */
export const changePassword = defineEndpoint({
  ...forSessions,
  base: "root",
  method: "POST",
  path: "/api/auth/change-password",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the password and end every other session.",
  body: passwordSchema,
  response: () => signedInSchema,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const { current_password: currentPassword, new_password: newPassword } = context.body;
    const attempt = { ...attemptOf(context), email: sessionOf(context).user.email };
    await deps.people.throttle.count(attempt);
    await deps.people.breached.assertUnknown(newPassword);
    deps.people.passwords.assertRoom();
    const body = { currentPassword, newPassword, revokeOtherSessions: true };
    const answer = await delegate(context, deps, {
      method: "POST",
      path: "/change-password",
      body,
      passwordParam: "current_password",
    });
    await deps.people.recovery.forgetEmailChange(sessionOf(context).user.id);
    await deps.people.throttle.succeeded(attempt);
    return answerWith(context, answer, signedIn(answer.body));
  },
});

const valueBytesMax = 2_048;
const bodyBytesMax = 64 * 1024;

const namePattern = /^[a-z][a-z0-9_.-]{0,63}$/;

const preferenceField = z
  .string()
  .regex(
    namePattern,
    "is no name of a preference: lower-case letters, digits, dots, dashes, at most 64, a letter first",
  );

const isKept = (text: string): boolean => !text.includes("\\u0000") && text.length <= valueBytesMax;

const valueField = z
  .unknown()
  .refine(
    (value) => isKept(JSON.stringify(value)),
    `must be at most ${valueBytesMax} characters of JSON`,
  );

const changesSchema = z.record(preferenceField, valueField);

const preferencesSchema = lazily(() =>
  z.object({
    object: z.literal("preferences"),
    preferences: z.record(z.string(), z.unknown()),
  }),
);

const shared = {
  ...forSessions,
  path: "/session/preferences",
  anywhere: true,
  response: preferencesSchema,
} as const;

export const getPreferences = defineEndpoint({
  ...shared,
  method: "GET",
  summary: "Show the preferences of the user.",
  description:
    "Values that clients store for a person, such as the theme, the time zone and dismissed notices. They follow the user to every " +
    "browser. The service itself does not use them.",
  async handle(context, { people }: Pick<Dependencies, "people">) {
    return context.json({
      object: "preferences",
      preferences: await people.preferences.of(sessionOf(context).user.id),
    });
  },
});

export const changePreferences = defineEndpoint({
  ...shared,
  method: "PATCH",
  unaudited: true,
  bodyBytesMax,
  summary: "Change the preferences of the user.",
  description:
    `Values by name: any JSON of at most ${valueBytesMax} characters, at most ${preferencesMax} names. Omitted names are unchanged; ` +
    "null removes a name.",
  body: changesSchema,
  async handle(context, { people }: Pick<Dependencies, "people">) {
    return context.json({
      object: "preferences",
      preferences: await people.preferences.change(sessionOf(context).user.id, context.body),
    });
  },
});
