import { html } from "hono/html";
import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { formHtml } from "../../pages/forms.ts";
import { messagePage } from "../../pages/message-page.ts";
import type { Page } from "../../pages/page.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { linkTokenField } from "../session/password-reset.ts";
import { emailField, newPasswordField } from "../account/account-fields.ts";
import { attemptOf } from "../session/sign-in-flow.ts";
import {
  emailInput,
  fieldsOf,
  formType,
  newPasswordInput,
  pageResponse,
  pageRoute,
  problemOf,
  personOf,
  readForm,
  redirect,
} from "./page-response.ts";
import type { Dependencies } from "../dependencies.ts";
import { tokenOf } from "./new-account.ts";

const toSignIn = { href: "/sign-in", label: "Sign in", plain: true } as const;
const noMail =
  "This service sends no mail. Ask the person who runs it for a link to choose another password.";

const forgotPage = (
  { people: { recovery } }: Pick<Dependencies, "people">,
  typed: { email?: string; problem?: string } = {},
): Page =>
  messagePage({
    title: "Forgot your password?",
    ...(recovery.sendsMail
      ? {
          sentences: [
            "Type the e-mail address of your account to get a link by which you choose another password.",
          ],
          ...(typed.problem === undefined ? {} : { problem: typed.problem }),
          form: {
            action: "/forgot-password",
            fields: [emailInput(typed.email)],
            button: "Send the link",
          },
        }
      : { sentences: [noMail] }),
    links: [toSignIn],
  });

const sentPage = messagePage({
  title: "Check your mail",
  sentences: [
    "If an account has this address, a link is on its way. It works once, within an hour.",
    "No mail after a few minutes? Check your spam folder, or ask for another link.",
  ],
  links: [{ href: "/forgot-password", label: "Ask for another link", plain: true }],
});

export const forgotPasswordPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/forgot-password",
  summary: "Show the page that requests a password reset link.",
  query: z.object({ sent: z.string().optional() }),
  handle: (context, deps: Pick<Dependencies, "people">) =>
    pageResponse(context, context.query.has("sent") ? sentPage : forgotPage(deps)),
});

const forgotSchema = z.object({ email: emailField });

/** Requests the link. The answer is the same whether or not the address has an account. */
export const submitForgotPassword = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/forgot-password",
  summary: "Request a password reset link (form of the page).",
  rawBody: forgotSchema,
  rawBodyType: formType,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const form = await readForm(context, deps);
    try {
      const { email } = checkBody(forgotSchema, fieldsOf(form));
      await deps.people.throttle.count({ ...attemptOf(context, email), purpose: "mail" });
      deps.people.recovery.requestReset(email);
      return redirect(context, "/forgot-password?sent=1");
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      return pageResponse(context, forgotPage(deps, { email: form.get("email") ?? "", problem }), {
        status,
      });
    }
  },
});

const resetForm = (token: string, problem?: string): Page =>
  messagePage({
    title: "Choose another password",
    sentences: ["This ends every session of the account."],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/reset-password",
      fields: [newPasswordInput("New password")],
      hidden: { token },
      button: "Set the password",
    },
  });

const deadReset = ({ people: { recovery } }: Pick<Dependencies, "people">): Page =>
  messagePage({
    title: "This link does not work",
    sentences: [
      "It was used, has expired or was replaced by a newer one. If you have just set your password, sign in with it.",
      ...(recovery.sendsMail ? [] : [noMail]),
    ],
    links: [toSignIn],
    ...(recovery.sendsMail
      ? {
          form: { action: "/forgot-password", fields: [emailInput()], button: "Send another link" },
        }
      : {}),
  });

/** Shows the page where another password is chosen, or that the link is not valid. */
export const resetPasswordPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/reset-password",
  summary: "Show the page that resets the password.",
  query: z.object({ token: z.string().optional() }),
  async handle(context, deps: Pick<Dependencies, "people">) {
    const token = tokenOf(context.query);
    if (token === "") return redirect(context, "/forgot-password");
    if (await deps.people.recovery.acceptsReset(token))
      return pageResponse(context, resetForm(token));
    return pageResponse(context, deadReset(deps), { status: 404 });
  },
});

const resetSchema = z.object({ token: linkTokenField, password: newPasswordField });

export const submitPasswordReset = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/reset-password",
  summary: "Reset the password (form of the page).",
  rawBody: resetSchema,
  rawBodyType: formType,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const { recovery, throttle } = deps.people;
    const form = await readForm(context, deps);
    try {
      const { token, password } = checkBody(resetSchema, fieldsOf(form));
      await throttle.count({ address: context.clientAddress(), purpose: "mail" });
      await recovery.reset(token, password);
      return redirect(context, "/sign-in?note=password");
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      const token = tokenOf(form);
      const page = (await recovery.acceptsReset(token))
        ? resetForm(token, problem)
        : deadReset(deps);
      return pageResponse(context, page, { status });
    }
  },
});

/** Returns whether a link confirms the address of an account, or of one that is created with it. */
const acceptsVerification = async (
  { people: { recovery, pendingSignUps } }: Pick<Dependencies, "people">,
  token: string,
): Promise<boolean> => (await recovery.acceptsVerification(token)) || pendingSignUps.accepts(token);

const verifyForm = (token: string, problem?: string): Page =>
  messagePage({
    title: "Confirm your e-mail address",
    sentences: [
      "Press the button to confirm that the address is yours. Opening the link is not enough, since mail programs do that too.",
    ],
    ...(problem === undefined ? {} : { problem }),
    form: { action: "/verify-email", hidden: { token }, button: "Confirm the address" },
  });

const verified = messagePage({
  title: "The address is confirmed",
  done: "Thank you. Your account has this address.",
  links: [{ href: "/", label: "Go to the start page" }],
});

const verificationSent = messagePage({
  title: "Check your mail",
  sentences: [
    "Another link is on its way to the address of your account. It works once, within a day.",
  ],
  links: [{ href: "/", label: "Go to the start page", plain: true }],
});

/**
 * Returns the page for an invalid link. Another link is offered only to the signed-in account: an
 * address by itself proves nothing.
 */
const deadVerification = (
  { people: { recovery } }: Pick<Dependencies, "people">,
  person: SessionCaller | undefined,
): Page =>
  messagePage({
    title: "This link does not work",
    sentences: [
      "It was used, has expired or was replaced by a newer one. If you have just confirmed your address, there is nothing more to do.",
    ],
    ...(person === undefined || person.user.emailVerified || !recovery.sendsMail
      ? {}
      : {
          more: html`<p>The address ${person.user.email} is not confirmed.</p>${formHtml({
            action: "/verify-email",
            hidden: { again: "1" },
            button: "Send another link",
          })}`,
        }),
    links:
      person === undefined
        ? [{ href: "/sign-in?return_to=%2Fverify-email", label: "Sign in to get another link" }]
        : [{ href: "/", label: "Go to the start page", plain: true }],
  });

/** Shows the page where an address is confirmed, or that the link is not valid. */
export const verifyEmailPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/verify-email",
  summary: "Show the page that confirms an e-mail address.",
  query: z.object({ token: z.string().optional(), done: z.enum(["confirmed", "sent"]).optional() }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    const { query } = context;
    const done = query.get("done");
    if (done === "confirmed") return pageResponse(context, verified);
    if (done === "sent") return pageResponse(context, verificationSent);
    const token = tokenOf(query);
    if (await acceptsVerification(deps, token)) return pageResponse(context, verifyForm(token));
    return pageResponse(context, deadVerification(deps, await personOf(context, deps)), {
      status: 404,
    });
  },
});

const verifySchema = z.object({ token: linkTokenField });

export const submitVerification = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/verify-email",
  summary: "Confirm an e-mail address (form of the page).",
  description:
    "With again in place of token, sends another link to the address of the signed-in account.",
  rawBody: verifySchema.partial().extend({ again: z.string().optional() }),
  rawBodyType: formType,
  async handle(context, deps: Pick<Dependencies, "people" | "clock" | "publicUrl">) {
    const { recovery, throttle, pendingSignUps } = deps.people;
    const form = await readForm(context, deps);
    const person = await personOf(context, deps);
    try {
      await throttle.count({
        ...attemptOf(context, form.has("again") ? person?.user.email : undefined),
        purpose: "mail",
      });
      if (form.has("again")) {
        if (person === undefined)
          throw new GatewayError("authentication_required", "Sign in to get another link.");
        recovery.requestVerification({ userId: person.user.id, email: person.user.email });
        return redirect(context, "/verify-email?done=sent");
      }
      const { token } = checkBody(verifySchema, fieldsOf(form));
      if (await pendingSignUps.confirm(token)) return redirect(context, "/sign-in?note=confirmed");
      await recovery.verify(token);
      return redirect(context, "/verify-email?done=confirmed");
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      const token = tokenOf(form);
      const page = (await acceptsVerification(deps, token))
        ? verifyForm(token, problem)
        : deadVerification(deps, person);
      return pageResponse(context, page, { status });
    }
  },
});
