import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene, type Person } from "./dashboard-scene.ts";
import { settled, type Screen } from "./screen.ts";

/** A person at work, whose clicks, fields and choices are counted. */
class Worker {
  steps = 0;
  readonly page: Page;

  constructor({ page }: Pick<Screen, "page">) {
    this.page = page;
  }

  /** Clicks what has a role and name. */
  async click(role: "button" | "link" | "tab" | "option", name: string | RegExp): Promise<void> {
    await this.press(
      this.page
        .getByRole(role, { name, ...(typeof name === "string" ? { exact: true } : {}) })
        .last(),
    );
  }

  async press(target: Locator): Promise<void> {
    this.steps += 1;
    await target.click();
  }

  async fill(label: string, text: string): Promise<void> {
    this.steps += 1;
    await this.page.getByLabel(label, { exact: true }).fill(text);
  }

  async select(label: string, option: string | { label: string }): Promise<void> {
    this.steps += 1;
    await this.page.getByLabel(label, { exact: true }).selectOption(option);
  }
}

/** Whether something is in sight without scrolling. */
async function isInFirstScreen(page: Page, target: Locator): Promise<boolean> {
  await target.waitFor();
  const box = await target.boundingBox();
  const height = page.viewportSize()?.height ?? 0;
  return box !== null && box.y >= 0 && box.y + Math.min(box.height, 40) <= height;
}

/** The eight tasks, with the steps that the best comparable product needs. */
describe.skipIf(!hasChromium)(`tasks in counted steps${missingChromium}`, () => {
  let scene: DashboardScene;
  let nova: FaultUpstream;
  beforeAll(async () => {
    [scene, nova] = await Promise.all([startDashboardScene(), startFaultUpstream()]);
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    nova.stop();
  });

  /** Lets a person do a task from the overview on; it may take so many steps. */
  async function task(
    person: Person,
    stepsMax: number,
    work: (worker: Worker) => Promise<void>,
  ): Promise<void> {
    const screen = await scene.open(person, "");
    const worker = new Worker(screen);
    await work(worker);
    expect(worker.steps).toBeLessThanOrEqual(stepsMax);
    expect(screen.problems).toEqual([]);
    await screen.close();
  }

  test("a first answer: 12 steps at most", () =>
    task("developer", 4, async (worker) => {
      await worker.click("link", "Playground");
      await worker.fill("Message", "Hello");
      await worker.click("button", "Send");
      const answer = worker.page.getByText('You wrote: "Hello"');
      expect(await isInFirstScreen(worker.page, answer)).toBe(true);
    }));

  test("a key with a cap: 6 steps at most", () =>
    task("developer", 6, async (worker) => {
      await worker.click("link", "Keys");
      await worker.click("button", "Create key");
      await worker.fill("Name", "Night shift");
      await worker.fill("Spending cap in USD", "5");
      await worker.click("button", "Create key");
      await worker.page
        .getByText(/sk-svc-v1-\w{20}/)
        .first()
        .waitFor();
    }));

  test("why a request cost what it cost: 2 steps at most, the prices in sight", () =>
    task("owner", 2, async (worker) => {
      const row = worker.page.getByRole("row").filter({ hasText: "acme/large" }).first();
      await worker.press(row.getByRole("button"));
      const prices = worker.page.getByRole("dialog").getByRole("table").first();
      expect(await isInFirstScreen(worker.page, prices)).toBe(true);
    }));

  test("the failures of one key: 3 steps at most, the list in sight", () =>
    task("developer", 3, async (worker) => {
      await worker.click("link", "Activity");
      await settled(worker.page);
      await worker.select("Key", { label: "Night watch" });
      await worker.select("Status", "failed");
      await settled(worker.page);
      const row = worker.page.getByRole("row").filter({ hasText: "broken/small" }).first();
      expect(await isInFirstScreen(worker.page, row)).toBe(true);
    }));

  test("a colleague who works here: 6 steps at most", () =>
    task("owner", 6, async (worker) => {
      await worker.click("link", "Members");
      await worker.fill("Invite by e-mail", "colleague@example.com");
      await worker.click("button", "Invite");
      const link = worker.page.locator("code", { hasText: "/join?" }).first();
      const url = new URL(await link.innerText());
      const theirs = await scene.openSignedOut(url.pathname + url.search, "phone");
      const colleague = new Worker(theirs);
      await colleague.fill("Your name", "Carla Colleague");
      await colleague.fill("Password", "a password of some length");
      await colleague.click("button", "Create an account and join");
      await theirs.page.getByRole("combobox", { name: "Workspace: Acme & Sons" }).waitFor();
      worker.steps += colleague.steps;
      await theirs.close();
    }));

  test("a budget that blocks: 4 steps at most", () =>
    task("owner", 4, async (worker) => {
      await worker.click("link", "Budgets");
      await worker.click("button", "Create budget");
      await worker.fill("Limit in USD", "50");
      await worker.click("button", "Create budget");
      await worker.page.getByRole("dialog").waitFor({ state: "detached" });
      const [budget] = listAt(await scene.ask("owner", "GET", "/budgets"), "data");
      expect([at(budget, "limit"), at(budget, "action")]).toEqual([50, "block"]);
    }));

  test("two models beside each other: 5 steps at most after the playground is open", () =>
    task("developer", 6, async (worker) => {
      await worker.click("link", "Playground");
      await worker.click("button", "Compare with another model");
      await worker.press(worker.page.getByRole("combobox", { name: /^Model 2: / }));
      await worker.click("option", /^acme\/large/);
      await worker.fill("Message", "Compare");
      await worker.page.keyboard.press("Enter");
      await worker.page.getByRole("link", { name: "Open the record" }).nth(1).waitFor();
    }));

  test("a provider is added by its operator: 7 steps at most where the gateway knows it", () =>
    task("operator", 7, async (worker) => {
      await worker.click("link", "Operator");
      await worker.click("button", "Configuration");
      await worker.click("button", "Add provider");
      await worker.fill("Id", "groq");
      await worker.fill("API key", "gsk-of-the-installation");
      await worker.click("button", "Add provider");
      await worker.page.getByRole("dialog").waitFor({ state: "detached" });
      await worker.page
        .getByRole("row")
        .filter({ hasText: "groq" })
        .getByText("in force")
        .waitFor();
    }));

  test("an incident is on the status page in 6 steps at most", () =>
    task("operator", 6, async (worker) => {
      await worker.click("link", "Operator");
      await worker.click("button", "Incidents");
      await worker.click("button", "Publish incident");
      await worker.fill("Title", "Slow answers");
      await worker.fill("What is known", "We are looking into it.");
      await worker.click("button", "Publish");
      await worker.page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await (await fetch(`${scene.origin}/status`)).text()).toContain("Slow answers");
    }));

  test("a server of one's own is added with the models that it lists, tested before", async () => {
    nova.script((request) =>
      request.method === "GET"
        ? json({ object: "list", data: [{ id: "nova-large" }] })
        : healthyChat(request),
    );
    const screen = await scene.open("operator", "/operator?group=configuration");
    const worker = new Worker(screen);
    await worker.click("button", "Add provider");
    await worker.fill("Id", "nova");
    await worker.fill("Base URL", nova.baseUrl);
    await worker.fill("API key", "none");
    await worker.click("button", "Test before saving");
    await worker.click("button", "nova-large");
    await worker.fill("Input, USD per 1M", "1");
    await worker.fill("Output, USD per 1M", "2");
    await worker.click("button", "Test before saving");
    await screen.page.getByText(/^answered in /).waitFor();
    await worker.click("button", "Add provider");
    await screen.page.getByRole("dialog").waitFor({ state: "detached" });
    const answer = await scene.chat({
      model: "nova/nova-large",
      messages: [{ role: "user", content: "Hello" }],
    });
    expect(answer.status).toBe(200);
    await screen.close();
  });
});
