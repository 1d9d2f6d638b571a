import type { Invitation } from "../../account/people/invitations.ts";
import type { Organization } from "../../account/people/organizations.ts";
import type { SessionCaller } from "../../account/people/session-caller.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { assertSameOrigin } from "../../http/same-origin.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { personOf } from "../pages/signed-in.ts";
import type { DelegatedAnswer } from "./session-delegate.ts";
import {
  signInWithPassword,
  signInWithSecondFactor,
  type SecondFactor,
  type SignInOutcome,
} from "./sign-in-flow.ts";

/** An invitation that can be accepted now. */
export type OpenInvitation = Invitation & { organizationName: string };

/** What somebody who opens the link of an invitation can do there. */
export type JoinState =
  | { kind: "closed" }
  /** Accepted already, by whoever looks. */
  | { kind: "joined"; organization: Organization }
  /** Signed in with the account that is invited: one button. */
  | { kind: "accept"; invitation: OpenInvitation }
  /** Signed in with another account. */
  | { kind: "other-account"; invitation: OpenInvitation; visitor: SessionCaller }
  /** Not signed in: makes an account or signs in. Which of them the address has is told to nobody. */
  | { kind: "identify"; invitation: OpenInvitation };

/** What became of accepting. */
export type JoinOutcome =
  | { kind: "joined"; organization: Organization; answer: DelegatedAnswer | undefined }
  | { kind: "second-factor"; answer: DelegatedAnswer };

/** What the link of an invitation leads to for the browser that asks; `joinedId` is the organisation that accepting ended at. */
export async function joinStateOf(
  context: RequestContext<unknown>,
  deps: Dependencies,
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

/** Accepts for whoever is signed in. Throws `authentication_required`, and `forbidden` where the invitation is not open for them. */
export async function joinAsVisitor(
  context: RequestContext<unknown>,
  deps: Dependencies,
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

/** Signs in with the password of the account that is invited, and accepts unless a second factor is wanted first. */
export async function joinWithPassword(
  context: RequestContext<unknown>,
  deps: Dependencies,
  { token, password }: { token: string; password: string },
): Promise<JoinOutcome> {
  await deps.people.invitations.assertOpen(token);
  const { email = "" } = (await deps.people.invitations.find(token)) ?? {};
  return joinAfter(context, deps, {
    token,
    outcome: await signInWithPassword(context, deps, { email, password }),
  });
}

/** Gives the second factor, and accepts. */
export async function joinWithSecondFactor(
  context: RequestContext<unknown>,
  deps: Dependencies,
  { token, factor }: { token: string; factor: SecondFactor },
): Promise<JoinOutcome> {
  return joinAfter(context, deps, {
    token,
    outcome: await signInWithSecondFactor(context, deps, factor),
  });
}

async function joinAfter(
  context: RequestContext<unknown>,
  deps: Dependencies,
  { token, outcome }: { token: string; outcome: SignInOutcome },
): Promise<JoinOutcome> {
  if (outcome.kind === "second-factor") return outcome;
  const { caller, answer } = outcome;
  return { kind: "joined", organization: await accept(context, deps, { token, caller }), answer };
}

/** Lets somebody in, and writes it into the logs of the organisation and of the workspace that they are in. */
async function accept(
  context: RequestContext<unknown>,
  { people, security }: Dependencies,
  { token, caller }: { token: string; caller: SessionCaller },
): Promise<Organization> {
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
  return organization;
}
