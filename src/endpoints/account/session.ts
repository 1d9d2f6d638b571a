import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, nameField } from "./account-fields.ts";
import { forSessions, newPasswordField, passwordField, sessionOf } from "./people-fields.ts";
import {
  currentSession,
  currentSessionSchema,
  sessionObject,
  sessionObjectSchema,
} from "./people-object.ts";
import { answerWith, delegate } from "./session-delegate.ts";
import { attemptOf } from "./sign-in-flow.ts";
import { signedIn, signedInSchema } from "./session-sign-in.ts";

/** Shows who is signed in, and where. */
export const getSession = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/session",
  anywhere: true,
  summary: "Show who is signed in, and in which workspace.",
  description: "A session that is used is prolonged once a day, by this route; its cookie with it.",
  response: currentSessionSchema,
  async handle(context, deps) {
    // The library prolongs the session where that is due, and writes the cookie anew.
    const { cookies } = await delegate(context, deps, { method: "GET", path: "/get-session" });
    return answerWith(
      context,
      { cookies, location: null, status: 200, body: null },
      currentSession(sessionOf(context)),
    );
  },
});

const changeSchema = z.strictObject({
  workspace_id: z
    .string()
    .max(200)
    .nullable()
    .optional()
    .describe("The workspace to be active in; null is the personal one."),
  name: nameField.optional().describe("What the user is called."),
});

/** Chooses the workspace that the session works in, or renames the user. */
export const changeSession = defineEndpoint<Dependencies, z.infer<typeof changeSchema>>({
  ...forSessions,
  method: "PATCH",
  path: "/session",
  anywhere: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Choose the active workspace, or rename the user.",
  body: changeSchema,
  response: z.object({
    object: z.literal("session"),
    id: z.string(),
    workspace_id: z.string().nullable(),
  }),
  async handle(context, { people }) {
    const { session, user, workspace } = sessionOf(context);
    const { workspace_id: wanted, name } = context.body;
    if (wanted !== undefined && wanted !== null) {
      const mine = await people.organizations.of(user.id);
      const own =
        workspace.ownerUserId === user.id
          ? workspace.id
          : await people.sessions.personalWorkspaceId(user.id);
      if (wanted !== own && !mine.some(({ workspaceId }) => workspaceId === wanted)) {
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

/** Lists the sessions of the user. */
export const listSessions = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/sessions",
  anywhere: true,
  summary: "List the sessions of the user.",
  response: z.object({ object: z.literal("list"), data: z.array(sessionObjectSchema) }),
  async handle(context, { people, clock }) {
    const { user, session } = sessionOf(context);
    const records = await people.sessions.list(user.id, clock.nowMs());
    return context.json({
      object: "list",
      data: records.map((record) => sessionObject(record, session.id)),
    });
  },
});

/** Ends a session of the user; its next request is refused. */
export const revokeSession = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "DELETE",
  path: "/sessions/:id",
  anywhere: true,
  summary: "End one session of the user.",
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { people }) {
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

/** Ends every session of the user but the one that asks. */
export const revokeOtherSessions = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "DELETE",
  path: "/sessions",
  anywhere: true,
  summary: "End every other session of the user.",
  response: z.object({ deleted: z.literal(true), count: z.number() }),
  async handle(context, { people }) {
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

/** Changes the password; every other session ends, and this one goes on under a new cookie. */
export const changePassword = defineEndpoint<Dependencies, z.infer<typeof passwordSchema>>({
  ...forSessions,
  base: "root",
  method: "POST",
  path: "/api/auth/change-password",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the password, and end every other session.",
  body: passwordSchema,
  response: signedInSchema,
  async handle(context, deps) {
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
    });
    await deps.people.throttle.succeeded(attempt);
    return answerWith(context, answer, signedIn(answer.body));
  },
});
