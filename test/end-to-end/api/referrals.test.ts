import { afterEach, describe, expect, test } from "bun:test";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { acme } from "../../support/gateway.ts";
import { startPayingGateway } from "../../support/stripe/paying-gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { Browser, startPeopled, type PeopledGateway } from "./people-browser.ts";
import { linkIn, startMailServer } from "./receivers.ts";
import { allEngines, engines } from "./two-workspaces.ts";

const usd = 1_000_000_000n;
const atSignUp = {
  referrerNano: 5n * usd,
  referredNano: 2n * usd,
  after: "sign_up",
  maximumPerWorkspace: 20,
} as const;
const openSignUp = { people: { signUp: "open", plan: "free", oidc: [] } } as const;

let scene: PeopledGateway | undefined;
afterEach(() => scene?.stop());

const start = async (
  url: string | undefined,
  changes: Partial<AppSettings>,
): Promise<PeopledGateway> => {
  scene = await startPeopled(url, { ...openSignUp, ...changes });
  return scene;
};
const settled = async (): Promise<void> => scene?.gateway().app.referrals?.idle();
const credits = async (browser: Browser): Promise<unknown> =>
  at(await browser.json("GET", "/credits"), "monthly_balance");
const codeOf = async (browser: Browser): Promise<string> =>
  textAt(await browser.json("GET", "/referrals"), "code");

/** Returns why a person's request for a paid model is refused with 402. */
async function refusedFor(browser: Browser): Promise<{ code: unknown; reason: unknown }> {
  const key = textAt(await browser.json("POST", "/keys", { name: "first" }), "key");
  const response = await scene!.gateway().post(
    "/chat/completions",
    { model: "acme/large", messages: [{ role: "user", content: "Hi" }] },
    {
      headers: { authorization: `Bearer ${key}` },
    },
  );
  expect(response.status).toBe(402);
  const { error } = (await response.json()) as {
    error: { code: string; metadata: Record<string, unknown> };
  };
  return { code: error.code, reason: error.metadata["reason"] };
}

/** Signs a person up with a code; returns their browser and the answer. */
async function comes(
  email: string,
  code: string | undefined,
  more: Record<string, unknown> = {},
): Promise<{ browser: Browser; response: Response }> {
  if (scene === undefined) throw new Error("nothing is started");
  const browser = scene.stranger();
  const person = {
    name: email,
    email,
    password: `password of ${email}`,
    ...(code === undefined ? {} : { referral_code: code }),
    ...more,
  };
  const response = await browser.ask("POST", "/api/auth/sign-up", person);
  await settled();
  return { browser, response };
}

describe.each(allEngines)("referral credits on %s", (_, freshUrl) => {
  test("are granted once to both sides as monthly credits, and reported only as numbers", async () => {
    const { owner, gateway, restart } = await start(await freshUrl(), { referrals: atSignUp });
    const code = await codeOf(owner);
    expect(await codeOf(owner)).toBe(code);
    const before = await owner.json("GET", "/credits");
    const { browser } = await comes("anna@example.com", code);
    expect(await browser.json("GET", "/credits")).toMatchObject({
      balance: 2,
      monthly_balance: 2,
      topup_balance: 0,
      used: 0,
    });
    expect(await owner.json("GET", "/credits")).toMatchObject({
      monthly_balance: Number(at(before, "monthly_balance")) + 5,
    });
    const shown = await owner.json("GET", "/referrals");
    expect(shown).toEqual({
      object: "referral_program",
      code,
      url: `http://127.0.0.1/sign-up?ref=${code}`,
      after: "sign_up",
      referrer_usd: 5,
      referred_usd: 2,
      maximum: 20,
      signed_up: 1,
      pending: 0,
      rewarded: 1,
      earned: 5,
      referred: null,
    });
    expect(await browser.json("GET", "/referrals")).toMatchObject({
      signed_up: 0,
      earned: 0,
      referred: { status: "rewarded", earned: 2 },
    });
    const grants = listAt(await owner.json("GET", "/admin/grants"), "data");
    expect(
      grants
        .map((grant) => [
          at(grant, "kind"),
          at(grant, "bucket"),
          at(grant, "amount"),
          at(grant, "granted_by"),
        ])
        .sort(),
    ).toEqual([
      ["referral", "monthly", 2, "system"],
      ["referral", "monthly", 5, "system"],
    ]);
    await gateway()
      .app.storage.database.updateTable("referrals")
      .set({ rewarded_at_ms: null })
      .execute();
    if (gateway().app.storage.kind === "postgres") await restart();
    await gateway().app.referrals?.run();
    expect([await credits(browser), at(await owner.json("GET", "/referrals"), "earned")]).toEqual([
      2, 5,
    ]);
  }, 240_000);

  test("have a maximum per workspace, also in parallel, and the referred accounts still get theirs", async () => {
    const { owner } = await start(await freshUrl(), {
      referrals: { ...atSignUp, maximumPerWorkspace: 2 },
    });
    const code = await codeOf(owner);
    const came = await Promise.all(
      ["a", "b", "c", "d", "e"].map((name) => comes(`${name}@example.com`, code)),
    );
    expect(came.map(({ response }) => response.status)).toEqual([200, 200, 200, 200, 200]);
    expect(await Promise.all(came.map(({ browser }) => credits(browser)))).toEqual([2, 2, 2, 2, 2]);
    expect(await owner.json("GET", "/referrals")).toMatchObject({
      signed_up: 5,
      rewarded: 2,
      earned: 10,
      pending: 0,
    });
  }, 240_000);

  test("can be claimed once after sign-up while the account is new", async () => {
    const { owner } = await start(await freshUrl(), { referrals: atSignUp });
    const code = await codeOf(owner);
    const { browser } = await comes("dora@example.com", undefined);
    expect(
      await errorOf(await browser.api("POST", "/referrals/accept", { referral_code: "nobodys" })),
    ).toMatchObject({ status: 400 });
    const answers = await Promise.all(
      [0, 1, 2].map(() => browser.api("POST", "/referrals/accept", { referral_code: code })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    await settled();
    expect(await credits(browser)).toBe(2);
    const own = await browser.api("POST", "/referrals/accept", {
      referral_code: await codeOf(browser),
    });
    expect(await errorOf(own)).toMatchObject({ status: 400 });
    const { browser: old } = await comes("emil@example.com", undefined);
    await scene!
      .gateway()
      .app.storage.database.updateTable("users")
      .set({ created_at: "2020-01-01T00:00:00.000Z" })
      .where("email", "=", "emil@example.com")
      .execute();
    expect(
      await errorOf(await old.api("POST", "/referrals/accept", { referral_code: code })),
    ).toMatchObject({ status: 409 });
  }, 240_000);

  test("are granted after the first top-up, and only once, with after: first_top_up", async () => {
    const paying = await startPayingGateway(await freshUrl(), {
      ...openSignUp,
      referrals: { ...atSignUp, after: "first_top_up" },
    });
    const gateway = paying.gateway();
    const code = textAt(await paying.json("GET", "/referrals"), "code");
    const browser = new Browser(() => gateway);
    const claim = {
      name: "Olga",
      email: "owner@example.com",
      password: "a long password",
      claim_token: await gateway.app.issueClaim(),
    };
    expect((await new Browser(() => gateway).ask("POST", "/api/auth/sign-up", claim)).status).toBe(
      200,
    );
    const person = {
      name: "Gina",
      email: "gina@example.com",
      password: "a long password",
      referral_code: code,
    };
    expect((await browser.ask("POST", "/api/auth/sign-up", person)).status).toBe(200);
    await gateway.app.referrals?.idle();
    expect(await browser.json("GET", "/referrals")).toMatchObject({
      referred: { status: "pending", earned: 0 },
    });
    expect(await credits(browser)).toBe(0);
    for (const earned of [2, 2]) {
      const order = textAt(await browser.json("POST", "/credits/top-ups", { amount: 10 }), "id");
      const session = [...paying.stripe.world.sessions.values()].find(
        ({ client_reference_id: id }) => id === order,
      );
      const [event] = paying.stripe.world.pay(session?.id ?? "");
      expect(await paying.deliver(event!)).toBe("credited");
      await gateway.app.referrals?.idle();
      expect(await credits(browser)).toBe(earned);
    }
    expect(await paying.json("GET", "/referrals")).toMatchObject({
      signed_up: 1,
      rewarded: 1,
      earned: 5,
    });
    await paying.stop();
  }, 240_000);
});

describe.each(engines)("conditions of referral credits, on %s", (_, freshUrl) => {
  test("are not granted for oneself, the same mailbox, members of the organization or unknown codes", async () => {
    const { owner } = await start(await freshUrl(), { referrals: atSignUp });
    const code = await codeOf(owner);
    const wrong = [
      ["owner+other@example.com", code],
      ["x@example.com", "nobodys"],
    ] as const;
    for (const [email, named] of wrong) {
      expect(await errorOf((await comes(email, named)).response)).toMatchObject({
        status: 400,
        param: "referral_code",
      });
    }
    const first = await comes("b.ert@gmail.com", code);
    const again = await comes("bert+2@googlemail.com", code);
    expect([await credits(first.browser), await credits(again.browser)]).toEqual([2, 0]);
    expect(
      await errorOf(await again.browser.api("POST", "/referrals/accept", { referral_code: code })),
    ).toMatchObject({ status: 409 });
    const organization = textAt(await owner.json("POST", "/organizations", { name: "Acme" }), "id");
    const workspaceId = textAt(
      await owner.json("GET", `/organizations/${organization}`),
      "workspace_id",
    );
    await owner.json("PATCH", "/session", { workspace_id: workspaceId });
    const theirs = await codeOf(owner);
    expect(theirs).not.toBe(code);
    const invitation = await owner.json("POST", `/organizations/${organization}/invitations`, {
      email: "carl@example.com",
    });
    const carl = scene!.stranger();
    const joined = await carl.ask("POST", "/api/auth/sign-up", {
      name: "Carl",
      email: "carl@example.com",
      password: "a long password",
      referral_code: theirs,
      invitation_token: new URL(textAt(invitation, "url")).searchParams.get("token"),
    });
    await settled();
    expect([joined.status, await credits(carl)]).toEqual([200, 0]);
    expect(await owner.json("GET", "/referrals")).toMatchObject({ signed_up: 0, earned: 0 });
  }, 240_000);

  test("are granted only after the address is confirmed when mail is configured", async () => {
    const mail = startMailServer();
    const { owner, gateway } = await start(await freshUrl(), {
      referrals: atSignUp,
      mail: { url: mail.url, from: "noreply@example.com" },
      providers: [acme("http://127.0.0.1:1")],
    });
    const organizationId = textAt(
      await owner.json("POST", "/organizations", { name: "Team" }),
      "id",
    );
    // Invited people have an account before their address is confirmed.
    const invitationFor = async (email: string): Promise<Record<string, unknown>> => {
      const invitation = await owner.json("POST", `/organizations/${organizationId}/invitations`, {
        email,
        role: "member",
      });
      return { invitation_token: new URL(textAt(invitation, "url")).searchParams.get("token") };
    };
    const { browser } = await comes(
      "fritz@example.com",
      await codeOf(owner),
      await invitationFor("fritz@example.com"),
    );
    await browser.json("PATCH", "/session", { workspace_id: null });
    await gateway().app.people.recovery.idle();
    expect(await refusedFor(browser)).toEqual({
      code: "insufficient_balance",
      reason: "signup_bonus_pending",
    });
    const { browser: other } = await comes(
      "nobodys@example.com",
      undefined,
      await invitationFor("nobodys@example.com"),
    );
    await other.json("PATCH", "/session", { workspace_id: null });
    expect(await refusedFor(other)).toEqual({
      code: "insufficient_balance",
      reason: "balance_too_low",
    });
    expect([await credits(browser), at(await owner.json("GET", "/referrals"), "pending")]).toEqual([
      0, 1,
    ]);
    const links = mail.mails.filter(({ to }) => to === "fritz@example.com").map(linkIn);
    const link = links.find((each) => each.includes("/verify-email")) ?? "";
    await scene!
      .stranger()
      .ask("POST", "/api/auth/verify-email", { token: new URL(link).searchParams.get("token") });
    await settled();
    expect([await credits(browser), at(await owner.json("GET", "/referrals"), "pending")]).toEqual([
      2, 0,
    ]);
    mail.stop();
  }, 240_000);
});

test("without the setting no credits are granted, codes are ignored and the routes return 501", async () => {
  const { owner } = await start(undefined, {});
  expect(await errorOf(await owner.api("GET", "/referrals"))).toMatchObject({
    status: 501,
    code: "not_configured",
  });
  const { browser, response } = await comes("hans@example.com", "nobodys");
  expect([response.status, await credits(browser)]).toEqual([200, 0]);
});

test("the page of the referral link creates the account", async () => {
  const { owner, stranger } = await start(undefined, { referrals: atSignUp });
  const code = await codeOf(owner);
  const browser = stranger();
  const page = await (await browser.ask("GET", `/sign-up?ref=${code}`)).text();
  expect(page).toContain(`<input type="hidden" name="token" value="${code}">`);
  expect(await (await browser.ask("GET", "/sign-up?ref=%22%3E%3Cscript%3E")).text()).toContain(
    'name="token" value="">',
  );
  const form = { token: code, name: "Ida", email: "ida@example.com", password: "a long password" };
  const short = await browser.ask(
    "POST",
    "/sign-up",
    new URLSearchParams({ ...form, password: "short" }),
  );
  expect([short.status, await short.text()]).toEqual([
    400,
    expect.stringContaining(`value="${code}"`),
  ]);
  const made = await browser.ask("POST", "/sign-up", new URLSearchParams(form));
  expect([made.status, made.headers.get("location")]).toEqual([303, "/"]);
  await settled();
  expect(await credits(browser)).toBe(2);
  browser.origin = "https://evil.example";
  expect(
    (
      await browser.ask(
        "POST",
        "/sign-up",
        new URLSearchParams({ ...form, email: "j@example.com" }),
      )
    ).status,
  ).toBe(403);
});

test("the sign-up page has no form when sign-up needs an invitation", async () => {
  const { stranger } = await start(undefined, {
    referrals: atSignUp,
    people: { signUp: "invitation", plan: "free", oidc: [] },
  });
  expect(await (await stranger().ask("GET", "/sign-up")).text()).not.toContain("<form");
});
