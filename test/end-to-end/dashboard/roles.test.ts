import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { json } from "../../support/upstream/steps.ts";
import { textAt } from "../api/at.ts";
import { startWebhook } from "../api/receivers.ts";
import {
  emailOf,
  passwordOf,
  persons,
  startDashboardScene,
  type DashboardScene,
  type Person,
} from "./dashboard-scene.ts";
import { screens } from "./every-screen.ts";
import { settled } from "./screen.ts";

const payload = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

/** Stores a hostile text in names, prompts, apps, agents, models and errors. */
async function plant(scene: DashboardScene): Promise<void> {
  await scene.ask("owner", "PATCH", "/session", { name: payload });
  await scene.ask("owner", "PATCH", `/workspaces/${scene.workspaceId}`, { name: payload });
  await scene.ask("owner", "POST", "/keys", { name: payload });
  const prompt = {
    title: payload,
    description: payload,
    body: payload,
    category: "x",
    visibility: "public",
  };
  await scene.ask("owner", "POST", "/prompts", prompt);
  await scene.ask("owner", "POST", "/presets", {
    slug: "evil",
    name: payload,
    config: { model: "acme/large" },
  });
  const headers = {
    "x-title": payload,
    "http-referer": "javascript:window.hacked=1",
    "user-agent": payload,
  };
  await (
    await scene.chat(
      { model: "sandbox/chat:free", messages: [{ role: "user", content: payload }] },
      headers,
    )
  ).text();
  await (
    await scene.chat({ model: payload, messages: [{ role: "user", content: "Hi" }] }, headers)
  ).text();
  scene.failing.script(json({ error: { message: payload, type: payload } }, { status: 500 }));
  await (
    await scene.chat(
      { model: "broken/small", messages: [{ role: "user", content: "Hi" }] },
      headers,
    )
  ).text();
}

/** Whether a stored text was executed on a page, and how often it is an element of it. */
const harm = "[window.hacked, document.querySelectorAll('img[src=x]').length]";
const harmless = [undefined, 0];

describe.skipIf(!hasChromium)(`screens and roles${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
    await plant(scene);
  }, 600_000);
  afterAll(() => scene.stop());

  const everybody = Object.keys(persons) as Person[];
  /** Actions by the screen that has them, and the people who may take them. */
  const actions: readonly (readonly [path: string, button: string, may: readonly Person[]])[] = [
    ["/members", "Invite", ["operator", "owner", "developer"]],
    ["/keys", "Create key", ["operator", "owner", "developer", "member"]],
    ["/hub", "Publish a prompt", ["operator", "owner", "developer", "member"]],
    ["/activity?status=failed", "Block Broken Inference", ["operator", "owner", "developer"]],
    ["/hub", "Reviews", ["operator"]],
    ["/hub?group=hubs", "Create collection", ["operator", "owner", "developer", "member"]],
    ["/members", "Delete organisation", ["operator", "owner"]],
    ["/budgets", "Create budget", ["operator", "owner", "developer"]],
    ["/provider-keys", "Add provider key", ["operator", "owner", "developer"]],
    ["/keys", "Create management key", ["operator", "owner", "developer"]],
    ["/security", "Save privacy", ["operator", "owner", "developer"]],
    ["/security", "Allow range", ["operator", "owner", "developer"]],
    ["/presets", "Create preset", ["operator", "owner", "developer", "member"]],
    ["/aliases", "Create alias", ["operator", "owner", "developer", "member"]],
    ["/operator?group=workspaces", "Grant credits", ["operator"]],
    ["/operator?group=people", "Block", ["operator"]],
    ["/operator?group=providers", "Test all now", ["operator"]],
  ];
  /** Screens of which only the operator sees more than the one that `actions` has. */
  const furtherOf = (person: Person): readonly string[] =>
    person === "operator" ? ["/operator?group=errors", "/hub?group=reviews"] : [];
  /** Whether `screens.test.ts` opens a screen as the same person, where nothing may be refused. */
  const isOpenedElsewhere = (path: string, person: Person): boolean =>
    screens.some((each) => each[0] === path && each[1] === person) &&
    !actions.some(([each]) => each === path);
  test.each(everybody)(
    "the %s loads every screen of the navigation without a forbidden request or a stored script, and sees the actions of the role",
    async (person) => {
      const { page, problems, follow, close } = await scene.open(person, "");
      const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
      const hrefs = await Promise.all((await links.all()).map((link) => link.getAttribute("href")));
      expect(hrefs.length).toBeGreaterThan(8);
      expect(hrefs.includes("/dashboard/operator")).toBe(person === "operator");
      const linked = hrefs.map((href) => String(href).replace("/dashboard", ""));
      const shown: [string, string, boolean][] = [];
      const paths = [...linked, ...actions.map(([each]) => each), ...furtherOf(person)];
      for (const path of new Set(paths)) {
        if (isOpenedElsewhere(path, person)) continue;
        await follow(path);
        if (linked.includes(path)) expect([path, problems]).toEqual([path, []]);
        expect([path, await page.evaluate(harm)]).toEqual([path, harmless]);
        if (path.startsWith("/activity?")) {
          const rows = page.getByRole("table").last().locator("tbody tr");
          await rows.first().getByRole("button").first().click();
          await page.getByRole("heading", { name: "Why it cost this" }).waitFor();
        }
        for (const [, button] of actions.filter(([each]) => each === path))
          shown.push([
            path,
            button,
            (await page.getByRole("button", { name: button }).count()) > 0,
          ]);
      }
      const expected = actions.map(([path, button, may]) => [path, button, may.includes(person)]);
      expect(shown.toSorted()).toEqual(expected.toSorted() as typeof shown);
      await close();
    },
  );

  test("a member who opens the operator's URL sees an error and no data", async () => {
    const { page, close } = await scene.open("member", "/operator?group=workspaces");
    expect(await page.getByRole("alert").first().innerText()).toMatch(/operator/i);
    expect(await page.getByRole("table").count()).toBe(0);
    await close();
  });

  test("stored texts are shown as text, in lists and in the drawer of a request", async () => {
    const screen = await scene.open("operator", "/keys");
    const { page } = screen;
    expect(await page.getByRole("table").getByText(payload).first().isVisible()).toBe(true);
    await screen.follow("/activity");
    for (const row of (await page.getByRole("table").last().locator("tbody tr").all()).slice(
      0,
      3,
    )) {
      await row.getByRole("button").first().click();
      await page.getByRole("heading", { name: "Why it cost this" }).waitFor();
      expect(await page.evaluate(harm)).toEqual(harmless);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await screen.close();
  });

  /** What stores a text as the owner, and the screen that shows it. */
  const stored: readonly (readonly [what: string, store: () => Promise<unknown>, path: string])[] =
    [
      [
        "a budget",
        () => scene.ask("owner", "POST", "/budgets", { name: payload, limit: 5 }),
        "/budgets",
      ],
      [
        "a management key",
        () =>
          scene.ask("owner", "POST", "/management-keys", {
            name: payload,
            scopes: ["read:credits"],
          }),
        "/keys",
      ],
      [
        "a provider key",
        () =>
          scene.ask("owner", "POST", "/auth/byok", {
            provider_id: "broken",
            api_key: "key-of-the-vendor",
            label: payload,
          }),
        "/provider-keys",
      ],
      [
        "a preset",
        () =>
          scene.ask("owner", "POST", "/presets", {
            slug: "texts",
            name: payload,
            description: payload,
            config: { model: payload, system: payload },
          }),
        "/presets/texts",
      ],
      [
        "an alias",
        () =>
          scene.ask("owner", "POST", "/aliases", {
            name: "texts",
            target: [{ model: "acme/large", when: { tag: payload } }],
            description: payload,
          }),
        "/aliases",
      ],
      [
        "a collection",
        () =>
          scene.ask("owner", "POST", "/hubs", {
            name: payload,
            slug: "texts",
            description: payload,
          }),
        "/hub?group=hubs&id=texts",
      ],
      [
        "knowledge",
        async () => {
          await scene.ask("owner", "POST", "/hubs", { name: "Notes" });
          await scene.ask("owner", "POST", "/hubs/notes/items", {
            name: payload,
            body: payload,
            slug: "note",
          });
        },
        "/hub?group=hubs&id=notes&item=note",
      ],
      [
        "an IP allowlist entry",
        () =>
          scene.ask("owner", "POST", "/security/ip-allowlist", {
            cidr: "127.0.0.0/8",
            description: payload,
          }),
        "/security",
      ],
      [
        "the browser of a session",
        () =>
          fetch(`${scene.origin}/api/auth/sign-in/email`, {
            method: "POST",
            headers: { "content-type": "application/json", "user-agent": payload },
            body: JSON.stringify({ email: emailOf("owner"), password: passwordOf("owner") }),
          }),
        "/account",
      ],
      [
        "an organization",
        () =>
          scene.ask("owner", "PATCH", `/organizations/${scene.organizationId}`, { name: payload }),
        "/members",
      ],
    ];
  test.each(stored)("the text of %s is shown as text", async (_, store, path) => {
    await store();
    const { page, close } = await scene.open("owner", path);
    await page.locator("main, [role=dialog]").getByText(payload).first().waitFor();
    expect(await page.evaluate(harm)).toEqual(harmless);
    await close();
  });

  test("the title and messages of a conversation are shown as text", async () => {
    await scene.ask("owner", "PATCH", "/conversations/settings", { keep: true });
    const messages = [
      { role: "user", content: payload },
      { role: "assistant", content: payload, model: payload },
    ];
    await scene.ask("owner", "POST", "/conversations", { title: payload, messages });
    const { page, close } = await scene.open("owner", "/playground");
    await page.getByLabel("Kept conversations").selectOption({ label: payload });
    await page.getByRole("heading", { name: payload }).waitFor();
    expect(await page.locator("main").getByText(payload).count()).toBeGreaterThan(2);
    expect(await page.evaluate(harm)).toEqual(harmless);
    await close();
  });

  test("no key secret is in the URL, the browser's storage or the log", async () => {
    const { page, close } = await scene.open("developer", "/keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("shown once");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const shown = page.getByText(/sk-svc-v1-\w{20}/).first();
    await shown.waitFor();
    const [secret = ""] = /sk-svc-v1-\w+/.exec(await shown.innerText()) ?? [];
    const kept = String(
      await page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
      ),
    );
    expect(kept).not.toContain(secret);
    expect(scene.gateway.logLines.join("\n")).not.toContain(secret);
    await page.reload();
    await settled(page);
    expect(await page.getByText(secret).count()).toBe(0);
    await close();
  });
});

describe.skipIf(!hasChromium)(`an owner's secrets${missingChromium}`, () => {
  const webhook = startWebhook();
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, {
      runsOn: true,
      seeded: false,
      webhookNetworks: ["127.0.0.0/8"],
    });
  }, 600_000);
  afterAll(async () => {
    await scene.stop();
    webhook.stop();
  });

  const shownIn = async (page: Page, title: string): Promise<string> => {
    const code = page.getByRole("dialog", { name: title }).locator("code").first();
    await code.waitFor();
    return code.innerText();
  };
  /** What shows or sends a secret on a page, by the page's path; gives the secret. */
  const ways: readonly (readonly [string, string, (page: Page) => Promise<string>])[] = [
    [
      "a management key",
      "/keys",
      async (page) => {
        await page.getByRole("button", { name: "Create management key" }).click();
        await page.getByLabel("Name").fill("Deployer");
        await page.getByLabel("see usage and requests").check();
        await page.getByRole("button", { name: "Create management key" }).last().click();
        return shownIn(page, "Your management key");
      },
    ],
    [
      "a webhook",
      "/budgets",
      async (page) => {
        await page.getByRole("button", { name: "Create budget" }).first().click();
        await page.getByLabel("Name").fill("Watch");
        await page.getByLabel("Limit in USD").fill("100");
        await page.getByLabel("Webhook").fill(webhook.url);
        await page.getByRole("button", { name: "Create budget" }).last().click();
        return shownIn(page, "Secret of the webhook");
      },
    ],
    [
      "a provider key",
      "/provider-keys",
      async (page) => {
        const secret = "sk-acme-a-secret-of-our-own";
        await page.getByRole("button", { name: "Add provider key" }).first().click();
        await page.getByLabel("Provider", { exact: true }).selectOption("acme");
        await page.getByLabel("Key", { exact: true }).fill(secret);
        await page.getByLabel("Label").fill("Ours");
        await page.getByRole("button", { name: "Add provider key" }).last().click();
        await page.getByRole("row").filter({ hasText: "Ours" }).waitFor();
        return secret;
      },
    ],
  ];
  test.each(ways)(
    "%s leaves its secret in no URL, storage, console or log",
    async (_, path, make) => {
      const { page, close } = await scene.open("owner", path);
      const said: string[] = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("request", (request) => said.push(request.url()));
      const secret = await make(page);
      expect(secret.length).toBeGreaterThan(16);
      said.push(
        String(
          await page.evaluate(
            "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
          ),
        ),
        ...scene.gateway.logLines,
      );
      expect(said.filter((text) => text.includes(secret))).toEqual([]);
      await page.reload();
      await settled(page);
      expect(await page.content()).not.toContain(secret);
      await close();
    },
  );
});

describe.skipIf(!hasChromium)(`the operator and hub screens${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 600_000);
  afterAll(() => scene.stop());

  test("the operator grants credits with the keyboard only, and is asked before rights change", async () => {
    const screen = await scene.open("operator", "/operator?group=workspaces&q=Acme");
    const { page } = screen;
    const row = page.getByRole("row").filter({ hasText: "Acme & Sons" });
    await row.getByRole("button", { name: "Grant credits" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Credits in USD").waitFor();
    await page.keyboard.press("Tab");
    await page.getByLabel("Credits in USD").focus();
    await page.keyboard.type("17.5");
    await page.keyboard.press("Tab");
    await page.keyboard.type("An apology");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await row.getByText("$42.").waitFor();
    const grants = await scene.ask(
      "operator",
      "GET",
      `/admin/grants?workspace_id=${scene.workspaceId}`,
    );
    expect(JSON.stringify(grants)).toContain("An apology");
    await screen.follow("/operator?group=workspaces");
    const own = page.getByRole("row").filter({ hasText: emailOf("member") });
    await own.getByRole("link", { name: "Personal" }).waitFor();
    await screen.follow("/operator?group=people");
    const member = page.getByRole("row").filter({ hasText: emailOf("member") });
    for (const [action, state] of [
      ["Make operator", "operator"],
      ["Remove as operator", "active"],
    ] as const) {
      await member.getByRole("button", { name: action }).click();
      await page.getByRole("dialog").getByRole("button", { name: action }).click();
      await member.getByText(state, { exact: true }).waitFor();
    }
    await screen.close();
  });

  test("a prompt is published, reviewed by the operator and then visible to everyone", async () => {
    const { page, close } = await scene.open("developer", "/hub");
    await page.getByRole("button", { name: "Publish a prompt" }).click();
    await page.getByLabel("Title").fill("Summarise");
    await page.getByLabel("About").fill("For long threads");
    await page.getByLabel("Category").fill("Writing");
    await page.getByLabel("Prompt", { exact: true }).fill("Say it in one sentence.");
    await page.getByLabel("Who sees it").selectOption("public");
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByRole("button", { name: "Summarise" }).click();
    await page
      .getByRole("dialog", { name: "Prompt" })
      .getByText("Say it in one sentence.")
      .waitFor();
    await close();
    const review = await scene.open("operator", "/hub?group=reviews");
    await review.page.getByRole("button", { name: "Approve" }).click();
    await review.page.getByText("Nothing waits for a review.").waitFor();
    await review.close();
    const approved = await scene.ask("member", "GET", "/prompts?scope=public");
    expect(textAt(approved, "data.0.title")).toBe("Summarise");
  });
});
