import { brand } from "../../../src/platform/kernel/brand.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { textAt } from "./at.ts";
import { Browser, ownersPassword } from "./people-browser.ts";

/** Cookies of sessions of every kind that the matrix tells apart. */
export interface SignedInSessions {
  /** In the personal workspace of the gateway's owner. */
  owner(): string;
  /** In an organisation's workspace, as its member. */
  member(): string;
  /** Of a browser that has signed out. */
  ended(): string;
}

const password = "a password of some length";
const membersEmail = "member@example.com";

/** Signs the owner and the member in; the first call creates their accounts before that. */
export async function signedInSessions(gateway: TestGateway): Promise<SignedInSessions> {
  const [owner, member, leaver] = [
    new Browser(() => gateway),
    new Browser(() => gateway),
    new Browser(() => gateway),
  ];
  const claimToken = await gateway.app.issueClaim();
  if (claimToken !== undefined) await makePeople({ owner, member, claimToken });
  for (const [browser, email, secret] of [
    [owner, "owner@example.com", ownersPassword],
    [member, membersEmail, password],
  ] as const) {
    if (browser.cookies.size === 0) await browser.signIn(email, secret);
  }
  const [organization] = (
    (await member.json("GET", "/organizations")) as { data: { workspace_id: string }[] }
  ).data;
  await member.json("PATCH", "/session", { workspace_id: organization?.workspace_id });
  await member.json("POST", "/keys", { name: "of the organisation" });
  await leaver.signIn("owner@example.com", ownersPassword);
  const ended = leaver.cookies.get(brand.sessionCookie) ?? "";
  await leaver.ask("POST", "/api/auth/sign-out");
  const cookieOf =
    ({ cookies }: Browser) =>
    (): string =>
      cookies.get(brand.sessionCookie) ?? "";
  return { owner: cookieOf(owner), member: cookieOf(member), ended: () => ended };
}

async function makePeople({
  owner,
  member,
  claimToken,
}: {
  owner: Browser;
  member: Browser;
  claimToken: string;
}): Promise<void> {
  await owner.ask("POST", "/api/auth/sign-up", {
    name: "Owner",
    email: "owner@example.com",
    password: ownersPassword,
    claim_token: claimToken,
  });
  const organizationId = textAt(
    await owner.json("POST", "/organizations", { name: "Matrix" }),
    "id",
  );
  const invitation = await owner.json("POST", `/organizations/${organizationId}/invitations`, {
    email: membersEmail,
  });
  const token = new URL(textAt(invitation, "url")).searchParams.get("token");
  await member.ask("POST", "/api/auth/sign-up", {
    name: "Member",
    email: membersEmail,
    password,
    invitation_token: token,
  });
}
