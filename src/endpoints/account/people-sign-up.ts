import { z } from "zod";
import type { Entitlement, NewPerson } from "../../account/people/sign-up.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { assertSameOrigin } from "../../http/same-origin.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, plainText } from "./account-fields.ts";
import { newPersonFields } from "./people-fields.ts";
import { answerWith, type DelegatedAnswer } from "./session-delegate.ts";
import { attemptOf, signInWithPassword } from "./sign-in-flow.ts";
import { signedIn, signedInSchema } from "./session-sign-in.ts";

const shared = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Signing in",
  encodeError: encodeContractError,
} as const;

/** Whose code brought somebody who signs up. */
export const referralCodeFields = {
  referral_code: plainText(50)
    .trim()
    .min(1)
    .optional()
    .describe(
      "Code of the workspace that brought this person; it means nothing where no credits are given for that.",
    ),
};

const tokenField = z.string().min(1).max(200).optional();
const signUpSchema = z.object({
  ...newPersonFields,
  claim_token: tokenField,
  invitation_token: tokenField,
  ...referralCodeFields,
});

/**
 * Makes an account and begins its first session; undefined where a link was sent instead, which proves whose address it is.
 * Throws `forbidden`, `conflict`, or `rate_limit_exceeded`.
 */
export async function signUpAndIn(
  context: RequestContext<unknown>,
  deps: Dependencies,
  { person, entitlement }: { person: NewPerson; entitlement: Entitlement },
): Promise<DelegatedAnswer | undefined> {
  assertSameOrigin(context.request, deps.publicUrl());
  await deps.people.throttle.count({ ...attemptOf(context, person.email), purpose: "mail" });
  const { pendingSignUps, recovery } = deps.people;
  if (entitlement.by === "policy" && recovery.sendsMail) {
    await pendingSignUps.request(person);
    return undefined;
  }
  const userId = await deps.people.signUp.create(person, entitlement);
  const { email, password } = person;
  if (deps.people.recovery.sendsMail) deps.people.recovery.requestVerification({ userId, email });
  return (await signInWithPassword(context, deps, { email, password })).answer;
}

function entitlementOf({
  claim_token: claim,
  invitation_token: invitation,
}: z.infer<typeof signUpSchema>): Entitlement {
  if (claim !== undefined && invitation !== undefined) {
    throw new GatewayError("bad_request", "claim_token and invitation_token exclude each other.", {
      param: "invitation_token",
    });
  }
  if (claim !== undefined) return { by: "claim", token: claim };
  return invitation === undefined ? { by: "policy" } : { by: "invitation", token: invitation };
}

/** Makes an account: the owner's by the link of the terminal, others by invitation or where sign-up is open. */
export const signUp = defineEndpoint<Dependencies, z.infer<typeof signUpSchema>>({
  ...shared,
  method: "POST",
  path: "/api/auth/sign-up",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Make an account with e-mail and password.",
  description:
    "The first one needs the token of the link that the terminal shows, others that of an invitation, unless auth.sign_up " +
    "is open. Then, where mail is sent, the answer is the same whether somebody has the address or not: the account is made once the " +
    "link that was sent there is used.",
  body: signUpSchema,
  response: z.union([signedInSchema, z.object({ confirmation: z.literal("sent") })]),
  async handle(context, deps) {
    const { name, email, password, referral_code: referralCode } = context.body;
    const person = { name, email, password, referralCode };
    const answer = await signUpAndIn(context, deps, {
      person,
      entitlement: entitlementOf(context.body),
    });
    return answer === undefined
      ? context.json({ confirmation: "sent" })
      : answerWith(context, answer, signedIn(answer.body));
  },
});

/** Says how one can sign in here. */
export const signInMethods = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/api/auth/methods",
  summary: "Show how one can sign in and up.",
  response: z.object({
    claimed: z.boolean(),
    sign_up: z.enum(["closed", "invitation", "open"]),
    password: z.literal(true),
    passkey: z.literal(true),
    password_reset: z.boolean(),
    oidc: z.array(z.object({ id: z.string(), name: z.string() })),
  }),
  handle: (context, { people: { claim, settings, recovery } }) =>
    context.json({
      claimed: claim.isClaimed,
      sign_up: settings.signUp,
      password: true,
      passkey: true,
      password_reset: recovery.sendsMail,
      oidc: settings.oidc.map(({ id, name }) => ({ id, name })),
    }),
});
