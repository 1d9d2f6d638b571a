import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { messagePage } from "../../pages/message-page.ts";
import {
  passkeyScript,
  passkeyScriptPath,
  signInPage as signInContent,
} from "../../pages/sign-in-page.ts";
import type { Dependencies } from "../dependencies.ts";
import { emailField, passwordField } from "../account/account-fields.ts";
import {
  beginProviderSignIn,
  pendingSecondFactor,
  signInWithPassword,
  signInWithSecondFactor,
  signOutOf,
  type SignInDependencies,
} from "../session/sign-in-flow.ts";
import {
  codeInput,
  emailInput,
  fieldsOf,
  formType,
  pageResponse,
  pageRoute,
  passwordInput,
  problemOf,
  secondFactorOf,
  personOf,
  readForm,
  redirect,
  returnOf,
  safeReturn,
  signInPath,
  withReturn,
} from "./page-response.ts";

const returnField = z
  .string()
  .max(4_000)
  .optional()
  .describe("Path to return to, within this service.");

/** Notes for people who were sent here by another page. */
const notes = {
  "signed-out": { done: "You are signed out." },
  password: { done: "The password is set, and every session has ended. Sign in with the new one." },
  confirmed: { done: "Your address is confirmed, and your account is created. Sign in." },
  late: { problem: "That took more than ten minutes. Start again with your password." },
} as const;

const noteField = z.enum(["signed-out", "password", "confirmed", "late"]);

/**
 * Returns the address at which passkeys and providers work, where the page was opened under another
 * one.
 */
function elsewhereOf(
  { request }: RequestContext<unknown>,
  publicUrl: string,
  returnTo: string,
): string | undefined {
  const { host, hostname } = new URL(publicUrl);
  const shown = request.headers.get("host");
  return shown === host || shown?.split(":")[0] === hostname
    ? undefined
    : `${publicUrl}${signInPath(returnTo)}`;
}

interface Shown {
  returnTo: string;
  email?: string;
  problem?: string | undefined;
  done?: string | undefined;
}

function signInOf(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "publicUrl">,
  { returnTo, email, problem, done }: Shown,
) {
  const { claim, settings } = deps.people;
  return signInContent({
    returnTo,
    problem,
    done,
    info: claim.isClaimed
      ? undefined
      : "This service has no owner yet. Open the link that the terminal printed when it started.",
    fields: [emailInput(email), passwordInput()],
    signUpPath:
      claim.isClaimed && settings.signUp === "open" ? withReturn("/sign-up", returnTo) : undefined,
    providers: settings.oidc,
    elsewhere: elsewhereOf(context, deps.publicUrl(), returnTo),
  });
}

/** Messages for why a provider sent a person back without a session, by the library's reasons. */
const providerProblems: Readonly<Record<string, string>> = {
  access_denied: "You declined at the provider, or it refused. Try again, or sign in another way.",
  account_not_linked:
    "An account has this address already. Sign in to it another way; then link the provider there.",
  signup_disabled: "There is no account for this person, and new accounts need an invitation.",
};

const providerProblem = (query: URLSearchParams): string | undefined => {
  const error = query.get("error");
  if (error === null) return undefined;
  return (
    providerProblems[error] ??
    (query.get("error_description") ?? "The provider did not sign you in. Try again.").slice(0, 300)
  );
};

export const signInPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/sign-in",
  summary: "Show the sign-in page.",
  query: z.object({ return_to: returnField, note: noteField.optional() }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock" | "publicUrl">) {
    const { query } = context;
    const returnTo = returnOf(query);
    if ((await personOf(context, deps)) !== undefined) return redirect(context, returnTo);
    const note = noteField.safeParse(query.get("note"));
    const shown = note.success ? notes[note.data] : { problem: providerProblem(query) };
    return pageResponse(context, signInOf(context, deps, { returnTo, ...shown }));
  },
});

const signInSchema = z.object({
  email: emailField,
  password: passwordField.min(1, "is required"),
  return_to: returnField,
});

/** Signs in, or asks for the second factor. */
export const submitSignIn = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/sign-in",
  summary: "Sign in (form of the page).",
  rawBody: signInSchema,
  rawBodyType: formType,
  async handle(context, deps: SignInDependencies) {
    const form = await readForm(context, deps);
    const returnTo = returnOf(form);
    try {
      const { email, password } = checkBody(signInSchema, fieldsOf(form));
      const { kind, answer } = await signInWithPassword(context, deps, { email, password });
      return redirect(
        context,
        kind === "signed-in" ? returnTo : withReturn("/sign-in/code", returnTo),
        answer.cookies,
      );
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      return pageResponse(
        context,
        signInOf(context, deps, { returnTo, problem, email: form.get("email") ?? "" }),
        { status },
      );
    }
  },
});

const codePage = (returnTo: string, problem?: string) =>
  messagePage({
    title: "One more step",
    sentences: ["Type the code that your authenticator app shows, or one of your backup codes."],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/sign-in/code",
      fields: [codeInput],
      hidden: { return_to: returnTo },
      button: "Sign in",
    },
    links: [{ href: signInPath(returnTo), label: "Start again", plain: true }],
  });

export const secondFactorPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/sign-in/code",
  summary: "Show the page that asks for the second factor.",
  query: z.object({ return_to: returnField }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    const returnTo = returnOf(context.query);
    if ((await personOf(context, deps)) !== undefined) return redirect(context, returnTo);
    if (pendingSecondFactor(context, deps) === undefined)
      return redirect(context, signInPath(returnTo));
    return pageResponse(context, codePage(returnTo));
  },
});

const codeSchema = z.object({
  code: z.string().trim().min(1, "is required").max(50),
  return_to: returnField,
});

export const submitSecondFactor = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/sign-in/code",
  summary: "Submit the second factor (form of the page).",
  rawBody: codeSchema,
  rawBodyType: formType,
  async handle(context, deps: SignInDependencies) {
    const form = await readForm(context, deps);
    const returnTo = returnOf(form);
    // A second click may come after the first has signed in.
    if ((await personOf(context, deps)) !== undefined) return redirect(context, returnTo);
    if (pendingSecondFactor(context, deps) === undefined) {
      return redirect(
        context,
        `/sign-in?${new URLSearchParams({ note: "late", return_to: returnTo }).toString()}`,
      );
    }
    try {
      const { code } = checkBody(codeSchema, fieldsOf(form));
      const { answer } = await signInWithSecondFactor(context, deps, secondFactorOf(code));
      return redirect(context, returnTo, answer.cookies);
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      return pageResponse(context, codePage(returnTo, problem), { status });
    }
  },
});

const providerSchema = z.object({ provider: z.string().min(1).max(100), return_to: returnField });

/** Sends the browser to an OpenID provider. */
export const submitProviderSignIn = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/sign-in/provider",
  summary: "Sign in at an OpenID provider (form of the page).",
  rawBody: providerSchema,
  rawBodyType: formType,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const form = await readForm(context, deps);
    const returnTo = returnOf(form);
    try {
      const { provider } = checkBody(providerSchema, fieldsOf(form));
      const place = signInPath(returnTo);
      const { url, answer } = await beginProviderSignIn(context, deps, {
        provider,
        callbackUrl: place,
        errorUrl: place,
      });
      const name = deps.people.settings.oidc.find(({ id }) => id === provider)?.name ?? provider;
      const page = messagePage({
        title: `Sign in with ${name}`,
        links: [{ href: url, label: `Continue to ${name}` }],
      });
      // Not a redirect: the form policy would have to name each host that the provider redirects to
      // (CSP `form-action`).
      return pageResponse(context, page, {
        cookies: answer.cookies,
        headers: { refresh: `0;url=${url}` },
      });
    } catch (thrown) {
      const { problem, status } = problemOf(thrown);
      return pageResponse(context, signInOf(context, deps, { returnTo, problem }), { status });
    }
  },
});

/** Shows the page to sign out, since a link alone must not end a session. */
export const signOutPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/sign-out",
  summary: "Show the sign-out page.",
  query: z.object({ return_to: returnField }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    const returnTo = returnOf(context.query);
    const person = await personOf(context, deps);
    if (person === undefined) return redirect(context, signInPath(returnTo));
    return pageResponse(
      context,
      messagePage({
        title: "Sign out",
        sentences: [`You are signed in as ${person.user.email}.`],
        form: { action: "/sign-out", hidden: { return_to: returnTo }, button: "Sign out" },
        links: [{ href: returnTo, label: "Stay signed in", plain: true }],
      }),
    );
  },
});

/** Ends the session. */
export const submitSignOut = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/sign-out",
  summary: "Sign out (form of the page).",
  rawBody: z.object({ return_to: returnField }),
  rawBodyType: formType,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const returnTo = safeReturn((await readForm(context, deps)).get("return_to"));
    const { cookies } = await signOutOf(context, deps);
    return redirect(
      context,
      returnTo === "/" ? "/sign-in?note=signed-out" : signInPath(returnTo),
      cookies,
    );
  },
});

export const passkeyScriptFile = defineEndpoint({
  ...pageRoute,
  otherResponseTypes: ["text/javascript"],
  counting: "none",
  method: "GET",
  path: passkeyScriptPath,
  summary: "Show the script for passkeys.",
  handle: (context) =>
    new Response(passkeyScript, {
      headers: {
        ...context.headers,
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
      },
    }),
});
