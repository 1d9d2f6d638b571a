import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  axeFindings,
  darkFindings,
  hasChromium,
  missingChromium,
  sidewaysPixels,
} from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { ownersEmail, startPageScene, type PageScene } from "./page-scene.ts";

const callback = "https://client.example/cb";
const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWBuGJSstw-cM";
const authPath = `/auth?callback_url=${encodeURIComponent(callback)}&code_challenge=${challenge}&limit=5`;

/** Pages by path; of those that are for people who are signed in, whether they are opened so. */
const rows: [path: string, status: number, signedIn?: true][] = [
  ["/", 200, true],
  ["/sign-in", 200],
  ["/sign-in?note=signed-out", 200],
  ["/sign-in?error=access_denied", 200],
  ["/sign-out", 200, true],
  ["/sign-up", 200],
  ["/sign-up?sent=1", 200],
  ["/forgot-password", 200],
  ["/forgot-password?sent=1", 200],
  ["/reset-password?token=dead", 404],
  ["/verify-email?token=dead", 404],
  ["/verify-email?token=dead", 404, true],
  ["/verify-email?done=confirmed", 200],
  ["/join?token=dead", 404],
  ["/claim", 200],
  ["/device", 200],
  ["/resume/run_none", 404, true],
  ["/api/auth/error?error=state_mismatch", 400],
  [authPath, 200, true],
  ["/auth", 400, true],
  ["/nowhere", 404],
  ["/api/v1/keys", 401],
  ["/api/v1/nowhere", 404],
  ["/sign-in/provider", 405],
];

/** Complete, since a test takes an argument that its row lacks for a callback. */
const pages = rows.map(([path, status, signedIn = false]): [string, number, boolean] => [
  path,
  status,
  signedIn,
]);

describe.skipIf(!hasChromium)(`every page${missingChromium}`, () => {
  let scene: PageScene;
  /** Windows without JavaScript, for tests that neither sign in nor out. */
  let stranger: Awaited<ReturnType<PageScene["open"]>>;
  let owner: typeof stranger;
  beforeAll(async () => {
    scene = await startPageScene(undefined);
    [stranger, owner] = [await scene.open(), await scene.openAs(ownersEmail)];
  }, 240_000);
  afterAll(() => scene.stop());

  const phone = { width: 390, height: 844 };
  const desktop = { width: 1280, height: 800 };

  test("each page has no axe findings, light and dark, fits a phone and a desktop, and has a heading and a name", async () => {
    const options = { viewport: phone, colorScheme: "light", javaScriptEnabled: true } as const;
    const signedOutPage = (await scene.open(options)).page;
    const ownersPage = (await scene.openAs(ownersEmail, options)).page;
    const invitation = await scene.invitation("guest@example.com");
    const joinPath = invitation.slice(scene.origin.length);
    for (const [path, status, signedIn] of [
      ...pages,
      [joinPath, 200, false] as const,
      [joinPath, 200, true] as const,
    ]) {
      const page = signedIn ? ownersPage : signedOutPage;
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize(phone);
      const response = await page.goto(scene.origin + path);
      expect([path, response?.status()]).toEqual([path, status]);
      expect([path, await axeFindings(page)]).toEqual([path, []]);
      expect([path, await darkFindings(page)]).toEqual([path, []]);
      expect([path, await sidewaysPixels(page)]).toEqual([path, 0]);
      expect(await page.locator("main h1").count()).toBe(1);
      const name = page.locator("header").getByRole("link", { name: "Switchyard" });
      expect(await name.isVisible()).toBe(true);
      expect(await page.locator("link[rel=icon]").getAttribute("href")).toBe("/favicon.svg");
      await page.setViewportSize(desktop);
      expect([path, await sidewaysPixels(page)]).toEqual([path, 0]);
      expect(await name.isVisible()).toBe(true);
      // A phone leaves out nothing else.
      if ((await page.locator(".further").count()) > 0)
        expect([path, await axeFindings(page)]).toEqual([path, []]);
    }
  }, 600_000);

  test("the documentation has no axe findings, and only its tables scroll sideways on a phone", async () => {
    const { page } = await scene.open({
      colorScheme: "dark",
      viewport: { width: 390, height: 844 },
      javaScriptEnabled: true,
    });
    const response = await page.goto(`${scene.origin}/docs/reference/limits`);
    expect([
      response?.status(),
      response?.headers()["content-security-policy"]?.includes("unsafe"),
    ]).toEqual([200, false]);
    expect(await page.locator("main table").count()).toBeGreaterThan(0);
    // Rows are alike: with all of them the check takes a minute on a busy machine.
    await page.evaluate(
      "document.querySelectorAll('tbody tr:nth-child(n+4)').forEach((row) => row.remove())",
    );
    expect([await axeFindings(page), await sidewaysPixels(page)]).toEqual([[], 0]);
    await page.context().close();
  });

  test.each(pages)(
    "%s cannot be framed, runs no foreign script and is not cached",
    async (path, status, signedIn) => {
      const { context } = signedIn ? owner : stranger;
      const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`);
      const response = await fetch(scene.gateway.origin + path, {
        headers: {
          accept: "text/html",
          "sec-fetch-mode": "navigate",
          cookie: cookies.join("; "),
        },
      });
      const headers = Object.fromEntries(response.headers);
      const policy = headers["content-security-policy"];
      expect(policy).toMatch(
        /^default-src 'none'; .*form-action 'self'.*; frame-ancestors 'none'; base-uri 'none'$/,
      );
      expect(policy).not.toContain("unsafe");
      expect([response.status, headers]).toMatchObject([
        status,
        {
          "x-frame-options": "DENY",
          "cache-control": "no-store",
          "x-content-type-options": "nosniff",
          "referrer-policy": "same-origin",
        },
      ]);
    },
  );

  test("a foreign page can neither frame the service nor sign its reader in to another account", async () => {
    const form =
      `<form method="post" action="${scene.origin}/sign-in"><input name="email" value="${ownersEmail}">` +
      `<input name="password" value="a password of some length"><button>Win</button></form>` +
      `<iframe src="${scene.origin}/sign-in"></iframe>`;
    const attacker = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(form, { headers: { "content-type": "text/html" } }),
    });
    try {
      const { context, page } = await scene.open();
      await page.goto(`http://127.0.0.1:${attacker.port}/`);
      expect(await page.frameLocator("iframe").getByLabel("E-mail address").count()).toBe(0);
      const answered = page.waitForResponse(`${scene.origin}/sign-in`);
      await page.getByRole("button", { name: "Win" }).click();
      expect((await answered).status()).toBe(403);
      await page.waitForURL(`${scene.origin}/sign-in`);
      expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("This was refused");
      expect((await context.cookies()).map(({ name }) => name)).toEqual([]);
    } finally {
      await attacker.stop(true);
    }
  });

  const elsewhere = [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "javascript:alert(1)",
    "http:evil.example",
    "///evil.example",
    "evil.example",
    "/ok\\..\\evil",
    "",
    "data:text/html,x",
    "/%00\u0000",
    `/${"a".repeat(4_000)}`,
  ];
  test.each(elsewhere)("return_to %j leads to the start page", async (returnTo) => {
    const { context, page } = owner;
    const cookie = (await context.cookies())
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ");
    const query = `?return_to=${encodeURIComponent(returnTo)}`;
    const answer = await fetch(`${scene.gateway.origin}/sign-in${query}`, {
      redirect: "manual",
      headers: { cookie },
    });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
    await page.goto(`${scene.origin}/sign-in${query}`);
    expect(page.url()).toBe(`${scene.origin}/`);
  });

  test("return_to within the service is kept, with its query", async () => {
    const { page } = owner;
    await page.goto(
      `${scene.origin}/sign-in?return_to=${encodeURIComponent("/device?user_code=BCDF-GHJK")}`,
    );
    expect(page.url()).toBe(`${scene.origin}/device?user_code=BCDF-GHJK`);
  });

  test("a browser gets a page of the API's pages without https too", async () => {
    const answer = await fetch(`${scene.gateway.origin}/api/v1/mcp/oauth/authorize`, {
      method: "POST",
      headers: { accept: "text/html", "upgrade-insecure-requests": "1", origin: "https://a.test" },
      body: new URLSearchParams({ decision: "approve" }),
    });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      403,
      "text/html; charset=utf-8",
    ]);
  });

  test("programs get JSON where a browser gets a page", async () => {
    const accept = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
    for (const [path, headers] of [
      ["/nowhere", {}],
      ["/nowhere", { accept: "application/json" }],
      ["/nowhere", { accept: "text/html", authorization: "Bearer unknown" }],
      ["/api/v1/nowhere", { accept }],
      ["/v1/models/acme/none", { accept }],
    ] as const) {
      const answer = await fetch(`${scene.gateway.origin}${path}`, { headers });
      expect([answer.status, textAt(await answer.json(), "error.code")]).toEqual([
        404,
        "not_found",
      ]);
    }
  });
});
