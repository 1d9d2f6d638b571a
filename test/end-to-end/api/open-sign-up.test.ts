import { describe, expect, test } from "bun:test";
import { startPeopled } from "./people-browser.ts";
import { linkIn, startMailServer } from "./receivers.ts";
import { engines } from "./two-workspaces.ts";

describe.each(engines)("open sign-up on %s", (_, freshUrl) => {
  test("responds alike for known and unknown addresses and completes with the mailed link", async () => {
    const mail = startMailServer();
    const people = { signUp: "open", plan: "free", oidc: [] } as const;
    const peopled = await startPeopled(await freshUrl(), {
      people,
      mail: { url: mail.url, from: "noreply@example.com" },
    });
    const { recovery } = peopled.gateway().app.people;
    await recovery.idle();
    const sent = mail.mails.length;
    const signUp = async (email: string): Promise<unknown[]> => {
      const browser = peopled.stranger();
      const response = await browser.ask("POST", "/api/auth/sign-up", {
        name: "N",
        email,
        password: "a long password",
      });
      return [response.status, await response.json(), browser.cookies.size];
    };
    const answers = [await signUp("new@example.com"), await signUp("owner@example.com")];
    expect(answers).toEqual([
      [200, { confirmation: "sent" }, 0],
      [200, { confirmation: "sent" }, 0],
    ]);
    await recovery.idle();
    expect(
      mail.mails
        .slice(sent)
        .map(({ to }) => to)
        .sort(),
    ).toEqual(["new@example.com", "owner@example.com"]);
    expect((await peopled.stranger().signIn("new@example.com", "a long password")).status).toBe(
      401,
    );
    const [received] = mail.mails.slice(sent).filter(({ to }) => to === "new@example.com");
    const token = new URL(received === undefined ? "" : linkIn(received)).searchParams.get("token");
    const verify = async (): Promise<number> =>
      (await peopled.stranger().ask("POST", "/api/auth/verify-email", { token })).status;
    expect([await verify(), await verify()]).toEqual([200, 403]);
    const browser = peopled.stranger();
    expect((await browser.signIn("new@example.com", "a long password")).status).toBe(200);
    expect(await browser.json("GET", "/session")).toMatchObject({
      user: { email: "new@example.com", email_verified: true },
    });
    await peopled.stop();
    mail.stop();
  }, 240_000);

  test("creates a bounded number of accounts for an address, however many mails it names", async () => {
    const people = { signUp: "open", plan: "free", oidc: [] } as const;
    const peopled = await startPeopled(await freshUrl(), { people });
    const { throttle } = peopled.gateway().app.people;
    const counted = async (address: string, email: string): Promise<boolean> =>
      throttle.countSignUp({ address, email }).then(
        () => true,
        () => false,
      );
    const byAddress = [];
    for (let index = 0; index < 12; index += 1)
      byAddress.push(await counted("203.0.113.7", `new@domain-${index}.example`));
    expect(byAddress.filter(Boolean)).toHaveLength(10);
    const byDomain = [];
    for (let index = 0; index < 60; index += 1)
      byDomain.push(await counted(`198.51.100.${index}`, `new-${index}@one.example`));
    expect(byDomain.filter(Boolean)).toHaveLength(50);
    await peopled.stop();
  }, 240_000);
});
