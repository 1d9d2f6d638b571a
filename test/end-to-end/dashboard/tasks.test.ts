import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { isNightly } from "../../support/nightly.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene, type Person } from "./dashboard-scene.ts";
import { settled, type Screen } from "./screen.ts";

/** With what a person works: a mouse, a finger on a phone, or the keyboard alone. */
type Hand = "mouse" | "finger" | "keyboard";
/**
 * The keyboard takes the steps of the mouse, on the same screens, which other tests click: a mouse
 * does each task nightly.
 */
const hands: readonly Hand[] = [...(isNightly ? (["mouse"] as const) : []), "finger", "keyboard"];

const tabsMax = 150;

/** A person at work, whose clicks, fields and choices are counted. */
class Worker {
  steps = 0;
  readonly page: Page;
  readonly hand: Hand;

  constructor({ page }: Pick<Screen, "page">, hand: Hand) {
    this.page = page;
    this.hand = hand;
  }

  /** Goes to a screen by its link, which a phone has in its menu. */
  async enter(screen: string): Promise<void> {
    if (this.hand === "finger") await this.click("button", "Menu");
    await this.click("link", screen);
    await this.page.getByRole("heading", { level: 1, name: screen }).waitFor();
    await settled(this.page);
  }

  /** Moves the focus with the tab key until it is on the target. */
  private async tabTo(target: Locator): Promise<void> {
    await target.waitFor();
    let element = await target.elementHandle();
    for (let tabs = 0; tabs < tabsMax; tabs += 1) {
      const isThere = await element?.evaluate((each) =>
        each.isConnected ? each === each.ownerDocument.activeElement : undefined,
      );
      if (isThere === true) return;
      // What the page renders again has another element in its place.
      if (isThere === undefined) element = await target.elementHandle();
      else await this.page.keyboard.press("Tab");
    }
    throw new Error(`the tab key does not lead to ${String(target)}`);
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
    if (this.hand !== "keyboard") return target.click();
    await this.tabTo(target);
    await this.page.keyboard.press("Enter");
  }

  async fill(label: string, text: string): Promise<void> {
    this.steps += 1;
    const field = this.page.getByLabel(label, { exact: true });
    if (this.hand !== "keyboard") return field.fill(text);
    await this.tabTo(field);
    await this.page.keyboard.type(text);
  }

  async select(label: string, option: string | { label: string }): Promise<void> {
    this.steps += 1;
    const field = this.page.getByLabel(label, { exact: true });
    if (this.hand === "keyboard") await this.tabTo(field);
    await field.selectOption(option);
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
    [scene, nova] = await Promise.all([
      startDashboardScene(undefined, { runsOn: true }),
      startFaultUpstream(),
    ]);
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    nova.stop();
  });

  /**
   * Lets a person do a task from the overview on with one of the hands; it may take so many steps,
   * and on a phone as many more as its menu and folded filters need.
   */
  async function task(
    [person, hand]: readonly [Person, Hand],
    [stepsMax, furtherOnPhone]: readonly [number, number],
    work: (worker: Worker) => Promise<void>,
  ): Promise<void> {
    const screen = await scene.open(person, "", hand === "finger" ? "phone" : "light");
    const worker = new Worker(screen, hand);
    await work(worker);
    expect(worker.steps).toBeLessThanOrEqual(stepsMax + (hand === "finger" ? furtherOnPhone : 0));
    expect(screen.problems).toEqual([]);
    await screen.close();
  }

  // First, while the newest requests are those of the scene.
  test.each(hands)(
    "why a request cost what it cost by %s: 2 steps at most, the prices in sight",
    (hand) =>
      task(["owner", hand], [2, 0], async (worker) => {
        const row = worker.page.getByRole("row").filter({ hasText: "acme/large" }).first();
        await worker.press(row.getByRole("button"));
        const prices = worker.page.getByRole("dialog").getByRole("table").first();
        expect(await isInFirstScreen(worker.page, prices)).toBe(true);
      }),
  );

  test.each(hands)("a first answer by %s: 12 steps at most", (hand) =>
    task(["developer", hand], [4, 0], async (worker) => {
      await worker.enter("Playground");
      await worker.fill("Message", "Hello");
      await worker.click("button", "Send");
      const answer = worker.page.getByText('You wrote: "Hello"');
      expect(await isInFirstScreen(worker.page, answer)).toBe(true);
    }),
  );

  test.each(hands)("a key with a cap by %s: 6 steps at most", (hand) =>
    task(["developer", hand], [6, 0], async (worker) => {
      await worker.enter("Keys");
      await worker.click("button", "Create key");
      await worker.fill("Name", "Night shift");
      await worker.fill("Spending cap in USD", "5");
      await worker.click("button", "Create key");
      await worker.page
        .getByText(/sk-svc-v1-\w{20}/)
        .first()
        .waitFor();
    }),
  );

  test.each(hands)("the failures of one key by %s: 3 steps at most, the list in sight", (hand) =>
    task(["developer", hand], [3, 2], async (worker) => {
      await worker.enter("Activity");
      if (hand === "finger") await worker.click("button", "More filters");
      await worker.select("Key", { label: "Night watch" });
      await worker.select("Status", "failed");
      await settled(worker.page);
      const row = worker.page.getByRole("row").filter({ hasText: "broken/small" }).first();
      await row.waitFor();
      if (hand !== "finger") expect(await isInFirstScreen(worker.page, row)).toBe(true);
    }),
  );

  test.each(hands)("a colleague who works here by %s: 6 steps at most", (hand) =>
    task(["owner", hand], [6, 1], async (worker) => {
      await worker.enter("Members");
      await worker.fill("Invite by e-mail", `${hand}@example.com`);
      await worker.click("button", "Invite");
      const link = worker.page.locator("code", { hasText: "/join?" }).first();
      const url = new URL(await link.innerText());
      const theirs = await scene.openSignedOut(url.pathname + url.search, "phone");
      const colleague = new Worker(theirs, "finger");
      await colleague.fill("Your name", "Carla Colleague");
      await colleague.fill("Password", "a password of some length");
      await colleague.click("button", "Create an account and join");
      await theirs.page.getByRole("combobox", { name: "Workspace: Acme & Sons" }).waitFor();
      worker.steps += colleague.steps;
      await theirs.close();
    }),
  );

  test.each(hands)("a budget that blocks by %s: 4 steps at most", (hand) =>
    task(["owner", hand], [4, 1], async (worker) => {
      await worker.enter("Budgets");
      await worker.click("button", "Create budget");
      await worker.fill("Limit in USD", "50");
      await worker.click("button", "Create budget");
      await worker.page.getByRole("dialog").waitFor({ state: "detached" });
      const [budget] = listAt(await scene.ask("owner", "GET", "/budgets"), "data");
      expect([at(budget, "limit"), at(budget, "action")]).toEqual([50, "block"]);
    }),
  );

  test.each(hands)(
    "two models beside each other by %s: 5 steps at most after the playground is open",
    (hand) =>
      task(["developer", hand], [6, 1], async (worker) => {
        await worker.enter("Playground");
        await worker.click("button", "Compare with another model");
        await worker.press(worker.page.getByRole("combobox", { name: /^Model 2: / }));
        const option = worker.page.getByRole("option", { name: /^acme\/large/ }).last();
        await option.waitFor();
        if (hand === "keyboard") {
          worker.steps += 1;
          await worker.page.keyboard.type("acme/large");
          await worker.page.keyboard.press("Enter");
        } else await worker.press(option);
        await worker.fill("Message", "Compare");
        await worker.page.keyboard.press(hand === "finger" ? "End" : "Enter");
        if (hand === "finger") await worker.click("button", "Send");
        await worker.page.getByRole("link", { name: "Open the record" }).nth(1).waitFor();
      }),
  );

  const known = { mouse: "groq", finger: "cerebras", keyboard: "mistral" } as const;
  test.each(hands)(
    "a provider is added by its operator by %s: 7 steps at most where the gateway knows it",
    (hand) =>
      task(["operator", hand], [7, 0], async (worker) => {
        await worker.enter("Operator");
        await worker.click("button", "Configuration");
        await worker.click("button", "Add provider");
        await worker.fill("Id", known[hand]);
        await worker.fill("API key", "gsk-of-the-installation");
        await worker.click("button", "Add provider");
        await worker.page.getByRole("dialog").waitFor({ state: "detached" });
        const row = worker.page.getByRole("row").filter({ hasText: known[hand] });
        await row.getByText("in force").waitFor();
      }),
  );

  test("an incident is on the status page in 6 steps at most", () =>
    task(["operator", "mouse"], [6, 0], async (worker) => {
      await worker.enter("Operator");
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
    const worker = new Worker(screen, "mouse");
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
