import { z } from "zod";
import { assertSameOrigin } from "../../access/admit-session.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { Invitation } from "../../identity/people/links/invitations.ts";
import type { Organization } from "../../identity/people/organizations.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Entitlement, NewPerson } from "../../identity/people/sign-up.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { personOf } from "../pages/page-response.ts";
import { accountBodyBytesMax, newPersonFields, plainText } from "../account/account-fields.ts";
import { signedIn, signedInSchema } from "./sign-in.ts";
import {
  answerWith,
  attemptOf,
  signInWithPassword,
  signInWithSecondFactor,
  type DelegatedAnswer,
  type SecondFactor,
  type SignInOutcome,
  type SignInDependencies,
  forSigningIn,
} from "./sign-in-flow.ts";

/** The referral code that a new user signs up with. */
const referralCodeFields = {
  referral_code: plainText(50)
    .trim()
    .min(1)
    .optional()
    .describe(
      "Code of the workspace that referred this person; ignored if the operator grants no referral credits.",
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
 * Creates an account and starts its first session, in the personal workspace or, with
 * `entersOrganization`, in that of the organisation that the invitation is for. Undefined where a
 * link was sent instead, to confirm the address. Throws `forbidden`, `conflict`, or
 * `rate_limit_exceeded`.
 */
export async function signUpAndIn(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  {
    person,
    entitlement,
    entersOrganization = false,
  }: { person: NewPerson; entitlement: Entitlement; entersOrganization?: boolean },
): Promise<DelegatedAnswer | undefined> {
  assertSameOrigin(context.request, deps.publicUrl());
  const attempt = attemptOf(context, person.email);
  await deps.people.throttle.count({ ...attempt, purpose: "mail" });
  if (entitlement.by === "policy")
    await deps.people.throttle.countSignUp({ address: attempt.address, email: person.email });
  const { pendingSignUps, recovery } = deps.people;
  if (entitlement.by === "policy" && recovery.sendsMail) {
    await pendingSignUps.request(person);
    return undefined;
  }
  const userId = await deps.people.signUp.create(person, entitlement);
  const { email, password } = person;
  if (deps.people.recovery.sendsMail) deps.people.recovery.requestVerification({ userId, email });
  const outcome = await signInWithPassword(context, deps, { email, password });
  if (entersOrganization && outcome.kind === "signed-in") {
    const [organization] = await deps.people.organizations.of(userId);
    if (organization !== undefined) await enter(deps, outcome.caller, organization);
  }
  return outcome.answer;
}

/** Makes the workspace of an organisation the one that a session works in. */
const enter = (
  { people }: Pick<Dependencies, "people">,
  { session }: SessionCaller,
  { workspaceId }: Organization,
): Promise<void> => people.sessions.activate(session.id, workspaceId);

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

/**
 * Creates an account: the owner's by the link from the terminal, others by invitation or where
 * sign-up is open.
 */
export const signUp = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/sign-up",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create an account with e-mail and password.",
  description:
    "The first account requires the token of the link that the terminal shows. Others require the token of an invitation, unless " +
    "auth.sign_up is open. If sign-up is open and the service sends mail, the answer does not reveal whether an account has the " +
    "address: the account is created when the mailed link is used.",
  body: signUpSchema,
  response: () => z.union([signedInSchema, z.object({ confirmation: z.literal("sent") })]),
  async handle(context, deps: SignInDependencies) {
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

/** Lists the sign-in methods that are available. */
export const signInMethods = defineEndpoint({
  ...forSigningIn,
  method: "GET",
  path: "/api/auth/methods",
  summary: "Show the ways to sign in and sign up.",
  response: () =>
    z.object({
      claimed: z.boolean(),
      sign_up: z.enum(["closed", "invitation", "open"]),
      password: z.literal(true),
      passkey: z.literal(true),
      password_reset: z.boolean(),
      oidc: z.array(z.object({ id: z.string(), name: z.string() })),
    }),
  handle: (context, { people: { claim, settings, recovery } }: Pick<Dependencies, "people">) =>
    context.json({
      claimed: claim.isClaimed,
      sign_up: settings.signUp,
      password: true,
      passkey: true,
      password_reset: recovery.sendsMail,
      oidc: settings.oidc.map(({ id, name }) => ({ id, name })),
    }),
});

/** An invitation that can be accepted now. */
export type OpenInvitation = Invitation & { organizationName: string };

/** The choices of a person who opens the link of an invitation. */
export type JoinState =
  | { kind: "closed" }
  /** Accepted already, by the person who opens it. */
  | { kind: "joined"; organization: Organization }
  /** Signed in with the invited account: one button. */
  | { kind: "accept"; invitation: OpenInvitation }
  /** Signed in with another account. */
  | { kind: "other-account"; invitation: OpenInvitation; visitor: SessionCaller }
  /**
   * Not signed in: create an account or sign in. Whether the address has an account is not
   * revealed.
   */
  | { kind: "identify"; invitation: OpenInvitation };

/** The outcome of accepting. */
type JoinOutcome =
  | { kind: "joined"; organization: Organization; answer: DelegatedAnswer | undefined }
  | { kind: "second-factor"; answer: DelegatedAnswer };

/**
 * Returns what the link of an invitation leads to for this browser. `joinedId` is the organisation
 * that was just joined.
 */
export async function joinStateOf(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "clock">,
  { token, joinedId }: { token: string; joinedId: string | null },
): Promise<JoinState> {
  const { invitations, organizations } = deps.people;
  const visitor = await personOf(context, deps);
  const invitation = token === "" ? undefined : await invitations.find(token);
  if (invitation !== undefined) {
    if (visitor === undefined) return { kind: "identify", invitation };
    return visitor.user.email === invitation.email
      ? { kind: "accept", invitation }
      : { kind: "other-account", invitation, visitor };
  }
  const mine =
    visitor === undefined || joinedId === null ? [] : await organizations.of(visitor.user.id);
  const organization = mine.find(({ id }) => id === joinedId);
  return organization === undefined ? { kind: "closed" } : { kind: "joined", organization };
}

/**
 * Accepts for the signed-in user. Throws `authentication_required`, and `forbidden` where the
 * invitation is not open for them.
 */
export async function joinAsVisitor(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "security" | "clock" | "publicUrl">,
  token: string,
): Promise<JoinOutcome> {
  assertSameOrigin(context.request, deps.publicUrl());
  const visitor = await personOf(context, deps);
  if (visitor === undefined)
    throw new GatewayError("authentication_required", "Sign in to accept the invitation.");
  return {
    kind: "joined",
    organization: await accept(context, deps, { token, caller: visitor }),
    answer: undefined,
  };
}

/**
 * Signs in with the password of the invited account, and accepts unless a second factor is required
 * first.
 */
export async function joinWithPassword(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  { token, password }: { token: string; password: string },
): Promise<JoinOutcome> {
  await deps.people.invitations.assertOpen(token);
  const { email = "" } = (await deps.people.invitations.find(token)) ?? {};
  return joinAfter(context, deps, {
    token,
    outcome: await signInWithPassword(context, deps, { email, password }),
  });
}

/** Takes the second factor, and accepts. */
export async function joinWithSecondFactor(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  { token, factor }: { token: string; factor: SecondFactor },
): Promise<JoinOutcome> {
  return joinAfter(context, deps, {
    token,
    outcome: await signInWithSecondFactor(context, deps, factor),
  });
}

async function joinAfter(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "security">,
  { token, outcome }: { token: string; outcome: SignInOutcome },
): Promise<JoinOutcome> {
  if (outcome.kind === "second-factor") return outcome;
  const { caller, answer } = outcome;
  return { kind: "joined", organization: await accept(context, deps, { token, caller }), answer };
}

/**
 * Adds a member, lets the session go on in the organisation, and audits it there and in the member's
 * own workspace.
 */
async function accept(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "security">,
  { token, caller }: { token: string; caller: SessionCaller },
): Promise<Organization> {
  const { people, security } = deps;
  const { user, workspace } = caller;
  const organization = await people.organizations.accept({
    token,
    userId: user.id,
    email: user.email,
  });
  const change = {
    actor: { kind: "user", id: user.id, label: user.email },
    address: context.clientAddress(),
    action: "POST /invitations/accept",
    target: `${organization.id} ${user.id}`,
    fields: ["token"],
  };
  for (const workspaceId of new Set([workspace.id, organization.workspaceId])) {
    await security.auditLog.tell({ ...change, workspaceId }, { status: 200, target: null });
  }
  await enter(deps, caller, organization);
  return organization;
}
