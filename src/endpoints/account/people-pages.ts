import { z } from "zod";
import { passwordCharactersMin } from "../../account/people/password-length.ts";
import type { Entitlement, NewPerson } from "../../account/people/sign-up.ts";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { asGatewayError, encodeContractError } from "../../http/error-envelope.ts";
import { formPageHeaders, formPageHtml, type FormField, type FormPage, type PageForm } from "../../http/form-page.ts";
import { readBodyText } from "../../http/read-body.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Answer } from "../../http/reply.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { joinAsVisitor, joinStateOf, joinWithPassword, joinWithSecondFactor, type JoinState } from "./join-flow.ts";
import { newPersonFields, passwordField } from "./people-fields.ts";
import type { SecondFactor } from "./sign-in-flow.ts";
import { signUpAndIn } from "./people-sign-up.ts";
import { answerWith } from "./session-delegate.ts";

const shared = {
  base: "root", access: { open: true }, counting: "at-door", tag: "Signing in", otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
} as const;

const page = (context: RequestContext<unknown>, content: FormPage, status = 200): Response =>
  new Response(formPageHtml(content), { status, headers: { ...context.headers, ...formPageHeaders() } });

interface Filled {
  /** What the link carries: a token, or a referral code. */
  token: string;
  name?: string;
  email?: string;
  /** The address is settled by the link. */
  fixedEmail?: true;
}

const fields = ({ name = "", email = "", fixedEmail }: Filled): FormField[] => [
  { name: "name", label: "Your name", type: "text", autocomplete: "name", value: name },
  { name: "email", label: "E-mail address", type: "email", autocomplete: "username", value: email, ...(fixedEmail ? { fixed: true } : {}) },
  {
    name: "password", label: `Password, at least ${passwordCharactersMin} characters`, type: "password", autocomplete: "new-password",
    charactersMin: passwordCharactersMin,
  },
];

const claimForm = (filled: Filled): FormPage => ({
  title: "Claim the owner account",
  sentences: ["This link was printed by the terminal that started the service. Whoever uses it first owns the service."],
  form: { action: "/claim", button: "Claim it", fields: fields(filled), hidden: { token: filled.token } },
});

/** Where whoever has an account already accepts with it. */
const acceptForm = (token: string, ...fields: FormField[]): PageForm =>
  ({ action: "/join/accept", button: fields.length === 0 ? "Join" : "Sign in and join", fields, hidden: { token } });

const joinForm = (organizationName: string, filled: Filled): FormPage => ({
  title: `Join ${organizationName}`,
  sentences: ["Make an account to accept the invitation, or sign in below with the one that you have."],
  form: { action: "/join", button: "Join", fields: fields({ ...filled, fixedEmail: true }), hidden: { token: filled.token } },
  otherForm: acceptForm(filled.token, {
    name: "current_password", label: "Password of your account", type: "password", autocomplete: "current-password",
  }),
});

/** What the link of an invitation shows. */
function joinPageOf(state: JoinState, token: string): FormPage {
  if (state.kind === "closed") return deadInvitation;
  if (state.kind === "joined") {
    return { title: `You are a member of ${state.organization.name}`, sentences: ["You are signed in in this browser."] };
  }
  const { invitation } = state;
  const title = `Join ${invitation.organizationName}`;
  if (state.kind === "identify") return joinForm(invitation.organizationName, { token, email: invitation.email });
  if (state.kind === "accept") {
    return { title, sentences: [`You are signed in as ${invitation.email}, and invited as ${invitation.role}.`], form: acceptForm(token) };
  }
  const { email } = state.visitor.user;
  const why = `The invitation is for ${invitation.email}, and you are signed in as ${email}.`;
  return { title, sentences: [why, "Sign out, then open the link again."] };
}

const secondFactorPage = (token: string): FormPage => ({
  title: "One more step", sentences: ["Type the code that your authenticator app shows, or one of your backup codes."],
  form: acceptForm(token, { name: "code", label: "Code", type: "text", autocomplete: "one-time-code" }),
});

const signUpForm = (filled: Filled): FormPage => ({
  title: "Make an account",
  sentences: filled.token === "" ? [] : ["Somebody sent you here: once you have an account, both of you may be given credits."],
  form: { action: "/sign-up", button: "Sign up", fields: fields(filled), hidden: { token: filled.token } },
});

const claimed: FormPage = { title: "The owner account is claimed", sentences: ["The owner signs in like everybody else."] };
const deadLink: FormPage = {
  title: "This link does not work",
  sentences: ["It was used, has expired or was replaced. While the owner account is unclaimed, a restart prints another one."],
};
const deadInvitation: FormPage = {
  title: "This invitation is not open", sentences: ["It was used or withdrawn, or has expired. If you used it, you are a member now."],
};

const welcome: FormPage = { title: "Your account is made", sentences: ["You are signed in in this browser."] };
const closed: FormPage = {
  title: "Nobody signs up here alone", sentences: ["Ask somebody who is here for an invitation, or the operator of the service."],
};

const tokenOf = ({ query }: RequestContext<unknown>): string => (query.get("token") ?? "").slice(0, 200);

const formSchema = z.object({ ...newPersonFields, token: z.string().min(1).max(200) });
const signUpFormSchema = z.object({ ...newPersonFields, token: z.string().max(50).default("") });

const formType = "application/x-www-form-urlencoded";

interface Submission {
  /** What the form holds of a person, and of what lets that person in. */
  read(form: Record<string, string>): { person: NewPerson; entitlement: Entitlement };
  /** The page that the browser ends at; asked for before the account is made. */
  location(form: Record<string, string>): string | Promise<string>;
  /** The form again, with what was typed. */
  again(filled: Filled): FormPage;
}

const withToken = (by: "claim" | "invitation"): Submission["read"] => (form) => {
  const { token, ...person } = checkBody(formSchema, form);
  return { person, entitlement: { by, token } };
};

/** Takes what a form sent; the browser ends at the page's own address without its token, or sees what is wrong. */
async function submit(context: RequestContext<unknown>, deps: Dependencies, { read, location, again }: Submission): Promise<Answer> {
  const form = Object.fromEntries(new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax)));
  try {
    const wanted = read(form);
    const end = await location(form);
    const answer = await signUpAndIn(context, deps, wanted);
    if (answer === undefined) {
      return page(context, { title: "Check your mail", sentences: ["We sent you a link. Open it to finish signing up."] });
    }
    return answerWith(context, { ...answer, status: 303, location: end }, null);
  } catch (thrown) {
    const error = asGatewayError(thrown);
    const { token = "", name = "", email = "" } = form;
    return page(context, { ...again({ token, name, email }), problem: error.message }, error.status);
  }
}

/** The page where the owner account is claimed. */
export const claimPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/claim",
  summary: "Show the page that claims the owner account.",
  query: z.object({ token: z.string().optional() }),
  async handle(context, { people }) {
    if (people.claim.isClaimed) return page(context, claimed);
    const token = tokenOf(context);
    return await people.claim.accepts(token) ? page(context, claimForm({ token })) : page(context, deadLink, token === "" ? 200 : 404);
  },
});

/** Claims the owner account. */
export const submitClaim = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/claim",
  summary: "Claim the owner account with the form of the page.",
  rawBody: formSchema,
  rawBodyType: formType,
  handle: (context, deps) => submit(context, deps, { read: withToken("claim"), location: () => "/claim", again: claimForm }),
});

/** The page where an invitation is accepted. */
export const joinPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/join",
  summary: "Show the page that accepts an invitation.",
  query: z.object({ token: z.string().optional(), joined: z.string().optional().describe("Organisation that accepting ended at.") }),
  async handle(context, deps) {
    const token = tokenOf(context);
    return page(context, joinPageOf(await joinStateOf(context, deps, { token, joinedId: context.query.get("joined") }), token));
  },
});

/** Where the browser ends after accepting. */
const joinedAt = (organizationId: string): string => `/join?joined=${encodeURIComponent(organizationId)}`;

/** Makes an account by an invitation. */
export const submitJoin = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/join",
  summary: "Accept an invitation with the form of the page.",
  rawBody: formSchema,
  rawBodyType: formType,
  handle: (context, deps) => submit(context, deps, {
    read: withToken("invitation"),
    // Before it is taken: afterwards nobody finds it by its token.
    location: async (form) => joinedAt((await deps.people.invitations.find(form["token"] ?? ""))?.organizationId ?? ""),
    again: (filled) => joinForm("the organisation", filled),
  }),
});

const acceptSchema = z.object({
  token: z.string().min(1).max(200), current_password: passwordField.optional(), code: z.string().trim().max(50).optional(),
});

/** Backup codes have a dash, codes of apps are digits alone. */
const factorOf = (code: string): SecondFactor => (/^\d+$/.test(code) ? { code } : { backupCode: code });

/** Accepts an invitation with an account that is there already: signed in, or with its password, and its second factor where it has one. */
export const submitAcceptance = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/join/accept",
  summary: "Accept an invitation with an account that is there already.",
  rawBody: acceptSchema,
  rawBodyType: formType,
  async handle(context, deps) {
    const form = Object.fromEntries(new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax)));
    const shownToken = form["token"] ?? "";
    try {
      const { token, current_password: password, code } = checkBody(acceptSchema, form);
      const outcome = await (code !== undefined ? joinWithSecondFactor(context, deps, { token, factor: factorOf(code) })
        : password !== undefined ? joinWithPassword(context, deps, { token, password }) : joinAsVisitor(context, deps, token));
      const answer = outcome.answer ?? { cookies: [], body: null };
      if (outcome.kind === "second-factor") return withCookies(page(context, secondFactorPage(token)), answer.cookies);
      return answerWith(context, { ...answer, status: 303, location: joinedAt(outcome.organization.id) }, null);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      const again = "code" in form ? secondFactorPage(shownToken)
        : joinPageOf(await joinStateOf(context, deps, { token: shownToken, joinedId: null }), shownToken);
      return page(context, { ...again, problem: error.message }, error.status);
    }
  },
});

function withCookies(response: Response, cookies: readonly string[]): Response {
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}

/** The page where anybody makes an account, where anybody may. */
export const signUpPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/sign-up",
  summary: "Show the page that makes an account.",
  query: z.object({ ref: z.string().optional().describe("Referral code of whoever brought this person.") }),
  async handle(context, { people: { claim, settings }, referrals }) {
    if (context.query.has("welcome")) return page(context, welcome);
    if (!claim.isClaimed || settings.signUp !== "open") return page(context, closed);
    // A code that nobody has keeps nobody out.
    const code = context.query.get("ref") ?? "";
    return page(context, signUpForm({ token: await referrals?.store.workspaceOf(code) === undefined ? "" : code }));
  },
});

/** Makes an account where anybody may. */
export const submitSignUp = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/sign-up",
  summary: "Make an account with the form of the page.",
  rawBody: signUpFormSchema,
  rawBodyType: formType,
  handle: (context, deps) => submit(context, deps, {
    read(form) {
      const { token, ...person } = checkBody(signUpFormSchema, form);
      return { person: { ...person, ...(token === "" ? {} : { referralCode: token }) }, entitlement: { by: "policy" } };
    },
    location: () => "/sign-up?welcome", again: signUpForm,
  }),
});

/** Where the browser ends when signing in at a provider failed. */
export const signInFailedPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/api/auth/error",
  summary: "Show why signing in at a provider failed.",
  handle: (context) => page(context, {
    title: "Signing in failed", sentences: ["The provider or this service refused. Go back and try again."],
    problem: (context.query.get("error_description") ?? context.query.get("error") ?? "The reason is not known.").slice(0, 300),
  }, 400),
});
