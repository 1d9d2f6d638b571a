import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { startChromium, type OwnWindows } from "../../support/chromium.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { KeptWindows } from "../../support/kept-windows.ts";
import { startOidcProvider, type OidcTestProvider } from "../../support/oidc-provider.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { Browser as Caller } from "../api/people-browser.ts";
import { linkIn, startMailServer, type MailServer } from "../api/receivers.ts";

export const password = "a password of some length";
export const ownersEmail = "owner@example.com";

/** A gateway that a real browser opens, with mail, a provider to sign in at, and open sign-up. */
export interface PageScene {
  gateway: TestGateway;
  origin: string;
  mail: MailServer;
  provider: OidcTestProvider;
  /** A browser window of its own, signed out; without scripts unless they are asked for. */
  open(options?: BrowserContextOptions): Promise<{ context: BrowserContext; page: Page }>;
  /** The same, signed in by the form of the page. */
  openAs(
    email: string,
    options?: BrowserContextOptions,
  ): Promise<{ context: BrowserContext; page: Page }>;
  /** Puts back the windows that were opened so far; for `afterEach`. */
  putBackWindows(): Promise<void>;
  /** Asks the API as a page of the context would. */
  ask(context: BrowserContext, method: string, path: string, body?: object): Promise<unknown>;
  /** Link of an invitation to an organisation of the owner. */
  invitation(email: string): Promise<string>;
  /** Removes a person from the organisation of the invitations. */
  removeMember(email: string): Promise<void>;
  /** The link in the newest mail to an address, once it was sent. */
  mailedLink(email: string): Promise<string>;
  stop(): Promise<void>;
}

/** Types into the form of the page to sign in. */
export async function signIn(page: Page, email: string, secret = password): Promise<void> {
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(secret);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Fills the form of a new account. */
export async function fillPerson(
  page: Page,
  { name, email }: { name: string; email?: string },
): Promise<void> {
  await page.getByLabel("Your name").fill(name);
  if (email !== undefined) await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
}

const askOf =
  (gateway: TestGateway, origin: string): PageScene["ask"] =>
  async (context, method, path, body) => {
    const cookie = (await context.cookies(origin))
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ");
    const answer = await fetch(gateway.origin + path, {
      method,
      headers: { cookie, origin, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const content: unknown = await answer.json();
    if (!answer.ok)
      throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(content)}`);
    return content;
  };

/** Invites people to the owner's organisation, which the first invitation creates. */
function membersOf(owner: Caller): Pick<PageScene, "invitation" | "removeMember"> {
  let organizationId: string | undefined;
  return {
    async invitation(email) {
      organizationId ??= textAt(
        await owner.json("POST", "/organizations", { name: "Acme & Sons" }),
        "id",
      );
      const path = `/organizations/${organizationId}/invitations`;
      return textAt(await owner.json("POST", path, { email }), "url");
    },
    async removeMember(email) {
      const path = `/organizations/${organizationId}/members`;
      const members = listAt(await owner.json("GET", path), "data");
      const member = members.find((each) => at(each, "email") === email);
      const removed = await owner.api("DELETE", `${path}/${textAt(member, "user_id")}`);
      if (!removed.ok) throw new Error(`${email} was not removed: ${await removed.text()}`);
    },
  };
}

/** Opens windows of a browser, signed out, that are put back after each test. */
function windowsOf(
  browser: OwnWindows,
  origin: string,
): Pick<PageScene, "open" | "putBackWindows"> {
  const windows = new KeptWindows(browser, `${origin}/healthz`);
  let taken: Awaited<ReturnType<typeof windows.take>>[] = [];
  return {
    async open(options = {}) {
      const window = await windows.take({ javaScriptEnabled: false, ...options }, []);
      taken.push(window);
      const { page } = window;
      const context = page.context();
      context.setDefaultTimeout(50_000);
      return { context, page };
    },
    async putBackWindows() {
      const opened = taken;
      taken = [];
      for (const { putBack } of opened) await putBack();
    },
  };
}

/** Claims a gateway as its owner, over the API. */
async function claim(gateway: TestGateway, owner: Caller): Promise<void> {
  const claimed = await owner.ask("POST", "/api/auth/sign-up", {
    name: "Olga Owner",
    email: ownersEmail,
    password,
    claim_token: await gateway.app.issueClaim(),
  });
  if (!claimed.ok) throw new Error(`the gateway was not claimed: ${await claimed.text()}`);
}

/** Starts one; its owner account is claimed unless that is left to the test. */
export async function startPageScene(
  url: string | undefined,
  { claimed = true, ...changes }: Partial<AppSettings> & { claimed?: boolean } = {},
): Promise<PageScene> {
  const mail = startMailServer();
  const credentials = { clientId: "switchyard", clientSecret: "secret of the client" };
  const provider = await startOidcProvider(credentials);
  let origin = "";
  const settings: Partial<AppSettings> = {
    ...(url === undefined ? {} : { storageUrl: url }),
    publicUrl: () => origin,
    mail: { url: mail.url, from: "noreply@example.com" },
    people: {
      signUp: "open",
      plan: "free",
      oidc: [
        {
          id: "acme",
          name: "Acme",
          issuer: provider.issuer,
          ...credentials,
          scopes: ["openid", "email"],
          signUp: true,
        },
      ],
    },
    ...changes,
  };
  const gateway = await startGateway(settings);
  // Passkeys belong to a name, not to an address.
  origin = `http://localhost:${new URL(gateway.origin).port}`;
  const browser = await startChromium();
  const { open, putBackWindows } = windowsOf(browser, origin);
  const ask = askOf(gateway, origin);
  const openAs: PageScene["openAs"] = async (email, options) => {
    const opened = await open(options);
    await opened.page.goto(`${origin}/sign-in`);
    await signIn(opened.page, email);
    await opened.page.waitForURL(`${origin}/`);
    return opened;
  };
  const owner = Object.assign(new Caller(() => gateway), { origin });
  if (claimed) await claim(gateway, owner);
  return {
    gateway,
    origin,
    mail,
    provider,
    open,
    openAs,
    ask,
    putBackWindows,
    ...membersOf(owner),
    async mailedLink(email) {
      await gateway.app.people.recovery.idle();
      const found = mail.mails.findLast(({ to }) => to === email);
      if (found === undefined) throw new Error(`no mail went to ${email}`);
      return linkIn(found);
    },
    async stop() {
      await browser.close();
      await gateway.stop();
      await provider.stop();
      mail.stop();
    },
  };
}
