import { z } from "zod";
import { assertSameOrigin } from "../../access/admit-session.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  atMost,
  emailField,
  forSessions,
  newPasswordField,
  sessionOf,
} from "../account/account-fields.ts";
import { attemptOf, forSigningIn } from "./sign-in-flow.ts";

/** The token of a link. */
export const linkTokenField = z
  .string("is required and must be a text")
  .min(1, "is required and must be a text")
  .max(...atMost(200));

const requestSchema = z.object({ email: emailField });

export const requestPasswordReset = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/request-password-reset",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Request a password reset link.",
  description:
    "The answer does not reveal whether an account has this address. If the service sends no mail, operators create the link.",
  body: requestSchema,
  response: () => z.object({ requested: z.literal(true) }),
  async handle(
    context,
    { people: { recovery, throttle }, publicUrl }: Pick<Dependencies, "people" | "publicUrl">,
  ) {
    assertSameOrigin(context.request, publicUrl());
    await throttle.count({ ...attemptOf(context, context.body.email), purpose: "mail" });
    recovery.requestReset(context.body.email);
    return context.json({ requested: true });
  },
});

const resetSchema = z.object({ token: linkTokenField, new_password: newPasswordField });

export const resetPassword = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/reset-password",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Reset the password with a link and end every session.",
  body: resetSchema,
  response: () => z.object({ reset: z.literal(true) }),
  async handle(
    context,
    { people: { recovery, throttle }, publicUrl }: Pick<Dependencies, "people" | "publicUrl">,
  ) {
    assertSameOrigin(context.request, publicUrl());
    await throttle.count({ address: context.clientAddress(), purpose: "mail" });
    await recovery.reset(context.body.token, context.body.new_password);
    return context.json({ reset: true });
  },
});

export const sendVerification = defineEndpoint({
  ...forSessions,
  base: "root",
  method: "POST",
  path: "/api/auth/send-verification-email",
  summary: "Request a link that confirms the account's e-mail address.",
  response: () => z.object({ requested: z.literal(true) }),
  async handle(context, { people: { recovery, throttle } }: Pick<Dependencies, "people">) {
    const { id: userId, email } = sessionOf(context).user;
    await throttle.count({ ...attemptOf(context, email), purpose: "mail" });
    recovery.requestVerification({ userId, email });
    return context.json({ requested: true });
  },
});

const verifySchema = z.object({ token: linkTokenField });

export const verifyEmail = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/verify-email",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Confirm an e-mail address with a link.",
  body: verifySchema,
  response: () => z.object({ verified: z.literal(true) }),
  async handle(
    context,
    {
      people: { recovery, throttle, pendingSignUps },
      publicUrl,
    }: Pick<Dependencies, "people" | "publicUrl">,
  ) {
    assertSameOrigin(context.request, publicUrl());
    await throttle.count({ address: context.clientAddress(), purpose: "mail" });
    if (!(await pendingSignUps.confirm(context.body.token)))
      await recovery.verify(context.body.token);
    return context.json({ verified: true });
  },
});
