import { html } from "hono/html";
import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { formHtml } from "../../pages/forms.ts";
import { messagePage } from "../../pages/message-page.ts";
import type { Page } from "../../pages/page.ts";
import { passwordField } from "../account/account-fields.ts";
import {
  joinAsVisitor,
  joinStateOf,
  joinWithPassword,
  joinWithSecondFactor,
  type JoinState,
  type OpenInvitation,
} from "../session/sign-up.ts";
import {
  codeInput,
  fieldsOf,
  formType,
  pageResponse,
  pageRoute,
  passwordInput,
  personInputs,
  problemOf,
  secondFactorOf,
  readForm,
  redirect,
  signInPath,
  withReturn,
} from "./page-response.ts";
import type { Dependencies } from "../dependencies.ts";
import { submitNewAccount, tokenFormSchema, tokenOf, type Typed } from "./new-account.ts";
import type { SignInDependencies } from "../session/sign-in-flow.ts";

const joinPath = (token: string): string => `/join?token=${encodeURIComponent(token)}`;

/** Returns where the browser goes after accepting: inside, or to a page that says so. */
const joinedPath = (
  { dashboard }: Pick<Dependencies, "dashboard">,
  organizationId: string,
): string => (dashboard.isOn ? "/dashboard" : `/join?joined=${encodeURIComponent(organizationId)}`);

/** Returns the form for an existing account, shown below the one for a new account. */
const existingAccount = (token: string) =>
  html`<h2>Already have an account?</h2>${formHtml({
    action: "/join/accept",
    fields: [passwordInput("current_password", "Password of your account")],
    hidden: { token },
    button: "Sign in and join",
    plain: true,
    beside: html`<a href="${signInPath(joinPath(token))}">Sign in another way</a>`,
  })}`;

const identifyPage = (
  { organizationName, email, role }: OpenInvitation,
  token: string,
  { name, problem }: Typed,
): Page =>
  messagePage({
    title: `Join ${organizationName}`,
    sentences: [
      `You are invited as ${role}. Create an account for ${email}, or use the one that you have.`,
    ],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/join",
      fields: personInputs({ email, fixedEmail: true, ...(name === undefined ? {} : { name }) }),
      hidden: { token },
      button: "Create an account and join",
    },
    more: existingAccount(token),
  });

const closed = messagePage({
  title: "This invitation is not open",
  sentences: [
    "It was used or withdrawn, or has expired. If you used it, you are a member. Otherwise ask for another one.",
  ],
  links: [{ href: "/", label: "Go to the start page" }],
});

/** Returns the page behind the link of an invitation. */
function joinPageOf(state: JoinState, token: string, typed: Typed = {}): Page {
  const problem = typed.problem === undefined ? {} : { problem: typed.problem };
  switch (state.kind) {
    case "closed":
      return closed;
    case "joined":
      return messagePage({
        title: `You are a member of ${state.organization.name}`,
        sentences: ["You work in its workspace now."],
        links: [{ href: "/", label: "Go to the start page" }],
      });
    case "identify":
      return identifyPage(state.invitation, token, typed);
    case "accept":
      return messagePage({
        title: `Join ${state.invitation.organizationName}`,
        sentences: [
          `You are signed in as ${state.invitation.email}, and invited as ${state.invitation.role}.`,
        ],
        ...problem,
        form: { action: "/join/accept", hidden: { token }, button: "Join" },
      });
    case "other-account":
      return messagePage({
        title: `Join ${state.invitation.organizationName}`,
        sentences: [
          `The invitation is for ${state.invitation.email}, and you are signed in as ${state.visitor.user.email}.`,
        ],
        ...problem,
        links: [{ href: withReturn("/sign-out", joinPath(token)), label: "Use another account" }],
      });
  }
}

const secondFactorPage = (token: string, problem?: string): Page =>
  messagePage({
    title: "One more step",
    sentences: ["Type the code that your authenticator app shows, or one of your backup codes."],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/join/accept",
      fields: [codeInput],
      hidden: { token },
      button: "Sign in and join",
    },
  });

export const joinPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/join",
  summary: "Show the page that accepts an invitation.",
  query: z.object({
    token: z.string().optional(),
    joined: z.string().optional().describe("Id of the organisation that was joined."),
  }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    const token = tokenOf(context.query);
    const state = await joinStateOf(context, deps, {
      token,
      joinedId: context.query.get("joined"),
    });
    return pageResponse(context, joinPageOf(state, token), {
      status: state.kind === "closed" ? 404 : 200,
    });
  },
});

/** Creates an account by an invitation. */
export const submitJoin = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/join",
  summary: "Accept an invitation (form of the page).",
  rawBody: tokenFormSchema,
  rawBodyType: formType,
  handle: (context, deps: SignInDependencies & Pick<Dependencies, "dashboard">) =>
    submitNewAccount(context, deps, {
      async read(form) {
        const { token, ...person } = checkBody(tokenFormSchema, fieldsOf(form));
        // Read before it is consumed: afterwards its token finds nothing.
        const invitation = await deps.people.invitations.find(token);
        const end = invitation === undefined ? "/" : joinedPath(deps, invitation.organizationId);
        return { person, entitlement: { by: "invitation", token }, end };
      },
      async again(form, typed) {
        const token = tokenOf(form);
        return joinPageOf(
          await joinStateOf(context, deps, { token, joinedId: null }),
          token,
          typed,
        );
      },
    }),
});

const acceptSchema = z.object({
  token: z.string().min(1).max(200),
  current_password: passwordField.optional(),
  code: z.string().trim().max(50).optional(),
});

/**
 * Accepts an invitation with an existing account: signed in, or with its password, and its second
 * factor where it has one.
 */
export const submitAcceptance = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/join/accept",
  summary: "Accept an invitation with an existing account.",
  rawBody: acceptSchema,
  rawBodyType: formType,
  async handle(context, deps: SignInDependencies & Pick<Dependencies, "dashboard">) {
    const form = await readForm(context, deps);
    try {
      const { token, current_password: password, code } = checkBody(acceptSchema, fieldsOf(form));
      const outcome = await (code !== undefined
        ? joinWithSecondFactor(context, deps, { token, factor: secondFactorOf(code) })
        : password !== undefined
          ? joinWithPassword(context, deps, { token, password })
          : joinAsVisitor(context, deps, token));
      const cookies = outcome.answer?.cookies ?? [];
      if (outcome.kind === "second-factor")
        return pageResponse(context, secondFactorPage(token), { cookies });
      return redirect(context, joinedPath(deps, outcome.organization.id), cookies);
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      const token = tokenOf(form);
      if (form.has("code"))
        return pageResponse(context, secondFactorPage(token, problem), { status });
      const state = await joinStateOf(context, deps, { token, joinedId: null });
      return pageResponse(context, joinPageOf(state, token, { problem }), { status });
    }
  },
});
