import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { messagePage } from "../../pages/message-page.ts";
import type { Page } from "../../pages/page.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Entitlement, NewPerson } from "../../identity/people/sign-up.ts";
import type { Dependencies } from "../dependencies.ts";
import { newPersonFields } from "../account/account-fields.ts";
import { signUpAndIn } from "../session/sign-up.ts";
import {
  signInWithPassword,
  type DelegatedAnswer,
  type SignInDependencies,
} from "../session/sign-in-flow.ts";
import {
  fieldsOf,
  formType,
  pageResponse,
  pageRoute,
  personInputs,
  problemOf,
  personOf,
  readForm,
  redirect,
  returnOf,
  signInPath,
  withReturn,
} from "./page-response.ts";

/** The values typed into the form of a new account, to be shown again. */
export interface Typed {
  name?: string;
  email?: string;
  problem?: string;
}

/** A form for a new account, as it was sent. */
export interface Submission {
  person: NewPerson;
  entitlement: Entitlement;
  /** The path to which the browser goes afterwards. */
  end: string;
}

/**
 * Creates the account, or signs in to the one that an earlier click created, whose password proves
 * its owner.
 */
async function signUpOrIn(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  { person, entitlement, end }: Submission,
) {
  try {
    const answer = await signUpAndIn(context, deps, {
      person,
      entitlement,
      entersOrganization: entitlement.by === "invitation",
    });
    return answer === undefined
      ? { location: "/sign-up?sent=1", answer: { cookies: [] } }
      : { location: end, answer };
  } catch (thrown) {
    const mayExist =
      thrown instanceof GatewayError && (thrown.code === "conflict" || thrown.code === "forbidden");
    const outcome: { kind: string; answer: DelegatedAnswer } | undefined = mayExist
      ? await signInWithPassword(context, deps, person).catch(() => undefined)
      : undefined;
    if (outcome === undefined) throw thrown;
    return {
      location: outcome.kind === "signed-in" ? end : withReturn("/sign-in/code", end),
      answer: outcome.answer,
    };
  }
}

/** Handles the form of a new account. The browser ends signed in, or sees what is wrong. */
export async function submitNewAccount(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  {
    read,
    again,
  }: {
    read(form: URLSearchParams): Promise<Submission>;
    /** Returns the page again, with what was typed and what is wrong. */
    again(form: URLSearchParams, typed: Typed): Promise<Page>;
  },
): Promise<Response> {
  const form = await readForm(context, deps);
  try {
    const { location, answer } = await signUpOrIn(context, deps, await read(form));
    return redirect(context, location, answer.cookies);
  } catch (thrown) {
    const { problem, status } = problemOf(thrown);
    const typed = { name: form.get("name") ?? "", email: form.get("email") ?? "", problem };
    return pageResponse(context, await again(form, typed), { status });
  }
}

/** Returns the token of a link. */
export const tokenOf = (parameters: URLSearchParams): string =>
  (parameters.get("token") ?? "").slice(0, 200);

/** The form of a new account by a link. */
export const tokenFormSchema = z.object({ ...newPersonFields, token: z.string().min(1).max(200) });

const claimForm = (token: string, { problem, ...typed }: Typed): Page =>
  messagePage({
    title: "Claim the owner account",
    sentences: ["This service is new and has no owner. The account that you create here runs it."],
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/claim",
      fields: personInputs(typed),
      hidden: { token },
      button: "Create the owner account",
    },
  });

const claimed = messagePage({
  title: "This service has an owner",
  sentences: [
    "The owner account exists already. Sign in to it, or ask its owner for an invitation.",
  ],
  links: [{ href: "/sign-in", label: "Sign in" }],
});

const unclaimed = (isDead: boolean): Page =>
  messagePage({
    title: isDead ? "This link does not work" : "Claim the owner account",
    sentences: [
      ...(isDead ? ["It has expired or was replaced by a newer one."] : []),
      "The terminal in which the service runs shows a link that opens this page. Restart the service to print another.",
    ],
  });

async function claimPageOf(
  { people: { claim } }: Pick<Dependencies, "people">,
  token: string,
  typed: Typed,
): Promise<{ page: Page; status: number }> {
  if (claim.isClaimed) return { page: claimed, status: 200 };
  if (await claim.accepts(token)) return { page: claimForm(token, typed), status: 200 };
  return { page: unclaimed(token !== ""), status: token === "" ? 200 : 404 };
}

export const claimPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/claim",
  summary: "Show the page that claims the owner account.",
  query: z.object({ token: z.string().optional() }),
  async handle(context, deps: Pick<Dependencies, "people" | "clock">) {
    if (deps.people.claim.isClaimed && (await personOf(context, deps)) !== undefined)
      return redirect(context, "/");
    const { page, status } = await claimPageOf(deps, tokenOf(context.query), {});
    return pageResponse(context, page, { status });
  },
});

export const submitClaim = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/claim",
  summary: "Claim the owner account (form of the page).",
  rawBody: tokenFormSchema,
  rawBodyType: formType,
  handle: (context, deps: SignInDependencies) =>
    submitNewAccount(context, deps, {
      async read(form) {
        const { token, ...person } = checkBody(tokenFormSchema, fieldsOf(form));
        return { person, entitlement: { by: "claim", token }, end: "/" };
      },
      again: async (form, typed) => (await claimPageOf(deps, tokenOf(form), typed)).page,
    }),
});

const signUpForm = (
  { code, returnTo }: { code: string; returnTo: string },
  { problem, ...typed }: Typed,
): Page =>
  messagePage({
    title: "Create an account",
    ...(code === ""
      ? {}
      : {
          sentences: [
            "You were referred: once you have an account, both of you may receive credits.",
          ],
        }),
    ...(problem === undefined ? {} : { problem }),
    form: {
      action: "/sign-up",
      fields: personInputs(typed),
      hidden: { token: code, return_to: returnTo },
      button: "Create the account",
    },
    links: [{ href: signInPath(returnTo), label: "I have an account", plain: true }],
  });

const byInvitation = messagePage({
  title: "Sign-up is by invitation",
  sentences: [
    "Ask the person who runs this service, or an organisation that uses it, for an invitation link.",
  ],
  links: [{ href: "/sign-in", label: "Sign in" }],
});

const sentPage = messagePage({
  title: "Check your mail",
  sentences: [
    "A link is on its way to your address. Open it within a day to create your account.",
    "No mail after a few minutes? Check your spam folder, or sign up again.",
  ],
  links: [{ href: "/sign-in", label: "Sign in", plain: true }],
});

const signUpFormSchema = z.object({ ...newPersonFields, token: z.string().max(50).default("") });

const isOpen = ({ people: { claim, settings } }: Pick<Dependencies, "people">): boolean =>
  claim.isClaimed && settings.signUp === "open";

/** Shows the page where an account is created, where sign-up is open. */
export const signUpPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/sign-up",
  summary: "Show the page that creates an account.",
  query: z.object({
    ref: z
      .string()
      .optional()
      .describe("Referral code of the workspace that referred this person."),
    return_to: z.string().max(4_000).optional().describe("Path to return to, within this service."),
    sent: z.string().optional(),
  }),
  async handle(context, deps: Pick<Dependencies, "people" | "referrals" | "clock">) {
    if (context.query.has("sent")) return pageResponse(context, sentPage);
    const returnTo = returnOf(context.query);
    if ((await personOf(context, deps)) !== undefined) return redirect(context, returnTo);
    if (!isOpen(deps)) return pageResponse(context, byInvitation);
    // An unknown code is no reason to refuse an account.
    const code = context.query.get("ref") ?? "";
    const isKnown = (await deps.referrals?.store.workspaceOf(code)) !== undefined;
    return pageResponse(context, signUpForm({ code: isKnown ? code : "", returnTo }, {}));
  },
});

/** Creates an account, where sign-up is open. */
export const submitSignUp = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/sign-up",
  summary: "Create an account (form of the page).",
  rawBody: signUpFormSchema,
  rawBodyType: formType,
  handle: (context, deps: SignInDependencies) =>
    submitNewAccount(context, deps, {
      async read(form) {
        const { token, ...person } = checkBody(signUpFormSchema, fieldsOf(form));
        const referred = token === "" ? person : { ...person, referralCode: token };
        return { person: referred, entitlement: { by: "policy" }, end: returnOf(form) };
      },
      again: async (form, typed) =>
        isOpen(deps)
          ? signUpForm({ code: tokenOf(form), returnTo: returnOf(form) }, typed)
          : byInvitation,
    }),
});
