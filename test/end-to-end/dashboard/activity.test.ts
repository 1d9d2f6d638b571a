import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { SocketClient } from "../sockets/support/socket-client.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { geometryFindings, lookedAt } from "./geometry.ts";
import { expectSound, pick, settled, tabTo } from "./screen.ts";

/** The text of what a click saves. */
async function saved(page: Page, button: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: button }).click(),
  ]);
  return readFileSync(await download.path(), "utf8");
}

/** The id of the record of an answer. */
const idOf = ({ headers }: Response): string => `gen_${headers.get("x-service-trace-id")}`;

describe.skipIf(!hasChromium)(`the activity and usage screens${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  const rows = (page: Page) => page.getByRole("table").last().locator("tbody tr");

  test("explain the cost of a request, with the keyboard only", async () => {
    const screen = await scene.open("developer", "/activity?model=acme/large&status=completed");
    const { page } = screen;
    const listed = await scene.ask(
      "developer",
      "GET",
      "/analytics/generations?model=acme/large&status=completed&limit=1",
    );
    const explained = await scene.ask(
      "developer",
      "GET",
      `/generation/${textAt(listAt(listed, "data")[0], "id")}/explain`,
    );
    await tabTo(page, /^\d+ \w+, \d\d:/);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("heading", { name: "Why it cost this" }).waitFor();
    await settled(page);
    for (const sentence of listAt(explained, "explanation")) {
      const shown = String(sentence)
        .replace(" at acme ", " at Acme Inference ")
        .replace(" at broken ", " at Broken Inference ")
        .replace("(upstream_error)", "(provider error)");
      await dialog.getByText(shown).first().waitFor();
    }
    // One row more is the sum.
    const prices = dialog.getByRole("table");
    expect(await prices.locator("tbody tr").count()).toBe(listAt(explained, "lines").length + 1);
    expect((await prices.boundingBox())?.height).toBeGreaterThan(60);
    for (const line of listAt(at(explained, "generation"), "routing.order")) {
      expect(await dialog.getByText(String(line), { exact: true }).isVisible()).toBe(true);
    }
    expect(await dialog.getByRole("list", { name: "2 attempts" }).isVisible()).toBe(true);
    await expectSound(screen);
    await dialog.getByRole("tab", { name: "Repeat" }).click();
    for (const client of ["curl", "TypeScript", "Python"])
      expect(await dialog.getByRole("button", { name: `Copy ${client}` }).isVisible()).toBe(true);
    expect(
      await dialog
        .getByText(/^curl /)
        .first()
        .isVisible(),
    ).toBe(true);
    await expectSound(screen);
    await page.keyboard.press("j");
    await page.waitForURL(
      (url) => url.searchParams.get("id") !== textAt(listAt(listed, "data")[0], "id"),
    );
    await page.keyboard.press("k");
    await page.waitForURL(
      (url) => url.searchParams.get("id") === textAt(listAt(listed, "data")[0], "id"),
    );
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?model=acme%2Flarge&status=completed");
    await screen.close();
  });

  test("a request opens beside the list, which stays usable", async () => {
    const screen = await scene.open("developer", "/activity");
    const { page } = screen;
    const before = page.viewportSize();
    await page.setViewportSize({ width: 1440, height: 900 });
    const listed = page.locator("main tbody tr");
    const dialog = page.getByRole("dialog", { name: "Request" });
    const idOpened = (): string => new URL(page.url()).searchParams.get("id") ?? "";
    await listed.first().getByRole("button").first().click();
    await dialog.getByRole("heading", { name: "Why it cost this" }).waitFor();
    const first = idOpened();
    await listed.last().getByRole("button").first().click();
    await page.waitForURL((url) => url.searchParams.get("id") !== first);
    const last = idOpened();
    await listed.last().locator("[aria-current]").waitFor();
    await page.keyboard.press("k");
    await page.waitForURL((url) => url.searchParams.get("id") !== last);
    await page.getByLabel("Status").selectOption("failed");
    await page.waitForURL(/status=failed/);
    await settled(page);
    expect(await dialog.isVisible()).toBe(true);
    await expectSound(screen);
    await page.getByRole("button", { name: /: account, theme, sign out/ }).click({ trial: true });
    expect(await lookedAt(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    if (before !== null) await page.setViewportSize(before);
    await screen.close();
  });

  test("let the operator find failed requests across workspaces, with the reason", async () => {
    const listed = await scene.ask("operator", "GET", "/admin/generations?status=failed");
    const failed = listAt(listed, "data");
    const screen = await scene.open("operator", "/operator?group=requests&status=failed");
    const { page } = screen;
    expect(failed.length).toBeGreaterThan(0);
    expect(await rows(page).count()).toBe(failed.length);
    expect(await rows(page).first().innerText()).toContain(textAt(failed[0], "workspace_name"));
    await rows(page).first().getByRole("button").first().click();
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("heading", { name: "Why it cost this" }).waitFor();
    expect(new URL(page.url()).searchParams.get("id")).toBe(textAt(failed[0], "id"));
    await dialog.getByText(/\/\w+ at Broken Inference failed \([a-z ]+\)\.$/).waitFor();
    // What would change this workspace, or ask in it, is no matter of another one's request.
    expect(await dialog.getByRole("button", { name: /^Block / }).count()).toBe(0);
    expect(await dialog.getByRole("link", { name: "Open in the playground" }).count()).toBe(0);
    await expectSound(screen);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await pick(page, "Of workspace", /^Acme & Sons/);
    await page.getByRole("combobox", { name: "Of workspace: Acme & Sons" }).waitFor();
    // What only one workspace knows is chosen of it.
    await page.getByRole("button", { name: "More filters" }).click();
    await page.getByRole("searchbox", { name: "Error code" }).waitFor();
    await page.getByRole("combobox", { name: "Key: Any key" }).click();
    await page
      .getByRole("option", { name: /requests?$/ })
      .first()
      .waitFor();
    await page.keyboard.press("Escape");
    await page.getByLabel("Status").selectOption("cancelled");
    await page.getByText("Nothing matches.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await rows(page).nth(failed.length).waitFor();
    expect(new URL(page.url()).search).toBe("?group=requests");
    await screen.close();
  });

  test("filters are kept in the URL and on reload, and can be cleared", async () => {
    const screen = await scene.open("developer", "/activity");
    const { page } = screen;
    expect(await rows(page).count()).toBe(5);
    await rows(page).getByRole("button", { name: "Failed" }).click();
    await page.waitForURL(/status=failed/);
    expect(await page.getByLabel("Status").inputValue()).toBe("failed");
    await pick(page, "Model", /^broken\/small.*1 request/);
    await page.waitForURL(/model=broken/);
    await settled(page);
    expect(await rows(page).count()).toBe(1);
    await page.reload();
    await settled(page);
    expect(await rows(page).count()).toBe(1);
    await page.getByRole("combobox", { name: "Model: broken/small" }).waitFor();
    await rows(page).getByRole("button", { name: "Broken Inference" }).click();
    await page.getByRole("combobox", { name: "Provider: Broken Inference" }).waitFor();
    await pick(page, "Provider", /^Acme Inference/, "acme inf");
    await page.getByText("Nothing matches.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.waitForURL(/\/activity$/);
    await screen.close();
  });

  test("the CSV contains exactly the filtered requests, with every column", async () => {
    const { page, close } = await scene.open("developer", "/activity?status=failed");
    const [head = "", ...lines] = (await saved(page, "Download CSV")).trim().split("\r\n");
    expect(head.split(",")).toContain("total_cost");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("broken/small");
    await close();
  });

  test("show which provider fails and let the owner block it", async () => {
    const { page, close } = await scene.open("owner", "/activity");
    const failures = page.getByRole("list", { name: "What failed" });
    await failures.getByRole("button", { name: "Broken Inference" }).first().click();
    await page.waitForURL(/provider=broken/);
    await settled(page);
    await rows(page).first().getByRole("button").first().click();
    await page.getByRole("button", { name: "Block Broken Inference" }).click();
    await page.getByText("Broken Inference is blocked for this workspace.").waitFor();
    const before = scene.failing.requests.length;
    const answer = await scene.chat({
      model: "acme/large",
      messages: [{ role: "user", content: "Again" }],
    });
    expect(answer.status).toBe(200);
    expect(scene.failing.requests.length).toBe(before);
    await scene.ask("owner", "PATCH", "/security/privacy", { blocked_providers: [] });
    await close();
  });

  test("newer requests are counted and appear on click, and refused ones are counted", async () => {
    const screen = await scene.open("developer", "/activity");
    const { page } = screen;
    const before = await rows(page).count();
    const empty = textAt(
      await scene.ask("owner", "POST", "/keys", { name: "Empty", limit: 0.000000001 }),
      "key",
    );
    const hi = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };
    const refused = await scene.chat(hi, { authorization: `Bearer ${empty}` });
    expect(refused.status).toBe(402);
    for (let sent = 0; sent < 2; sent += 1)
      await (await scene.chat({ ...hi, model: "sandbox/chat:free" })).text();
    await page.evaluate('document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))');
    await page.getByRole("button", { name: "2 newer requests" }).waitFor();
    expect(await rows(page).count()).toBe(before);
    await page.getByRole("button", { name: "2 newer requests" }).click();
    await rows(page)
      .nth(before + 1)
      .waitFor();
    expect(await rows(page).count()).toBe(before + 2);
    await screen.go(page.url());
    await page.getByText(/^1 refused with 402/).waitFor();
    await screen.close();
  });

  test("newer requests are counted with the list's filters", async () => {
    const screen = await scene.open("developer", "/activity?session_id=counted");
    const { page } = screen;
    await page.getByText("Nothing matches.").waitFor();
    // A filter in use is in sight, also one of those that are folded away.
    await page.getByRole("combobox", { name: "Session: counted" }).waitFor();
    const hi = { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hi" }] };
    await (await scene.chat(hi)).text();
    await (await scene.chat({ ...hi, session_id: "counted" })).text();
    await (await scene.chat({ ...hi, session_id: "another" })).text();
    await page.evaluate('document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))');
    await page.getByRole("button", { name: "1 newer request", exact: true }).click();
    await rows(page).first().waitFor();
    expect(await rows(page).count()).toBe(1);
    await screen.close();
  });

  test("usage sums by group and range, compares with the previous period and exports what is shown", async () => {
    const screen = await scene.open("owner", "/usage");
    const { page } = screen;
    await tabTo(page, "Group");
    // Not by its letters, which a list takes for one word only while they come fast.
    while ((await page.getByLabel("Group", { exact: true }).inputValue()) !== "key")
      await page.keyboard.press("ArrowDown");
    await page.waitForURL(/group=key/);
    await settled(page);
    const table = page.getByRole("table");
    await table.locator("tbody").getByText("Night watch").waitFor();
    await page.getByLabel("Group", { exact: true }).selectOption("person");
    await table.getByText("Owner Example").waitFor();
    await page.getByLabel("Figure", { exact: true }).selectOption("requests");
    await page.getByLabel("Range").selectOption("24h");
    await page.waitForURL(/range=24h/);
    await settled(page);
    const total = Number(
      (await table.locator("tbody td").nth(1).innerText()).replaceAll(/\D/g, ""),
    );
    const usage = await scene.ask(
      "owner",
      "GET",
      `/analytics/usage?from=${new Date(Date.now() - 86_400_000).toISOString()}&interval=hour`,
    );
    expect(total).toBe(
      listAt(usage, "data").reduce<number>((sum, row) => sum + Number(at(row, "requests")), 0),
    );
    expect(await table.innerText()).toContain("none in the period before");
    await expectSound(screen);
    const json: unknown = JSON.parse(await saved(page, "Download JSON"));
    const [head, ...lines] = (await saved(page, "Download CSV")).split("\n");
    expect(head).toStartWith("bucket,model,provider,key_id,requests");
    expect(lines).toHaveLength((json as unknown[]).length);
    await page.getByLabel("Group", { exact: true }).selectOption("part");
    const parts = page.getByRole("group", { name: "Usage by part" });
    await parts.getByRole("row", { name: /^Input tokens/ }).waitFor();
    await parts.getByRole("row", { name: /^Output tokens/ }).waitFor();
    await page.getByLabel("Second group", { exact: true }).selectOption("model");
    await parts.getByRole("row", { name: /^Input tokens *acme\/large/ }).waitFor();
    await settled(page);
    const [partHead, ...partLines] = (await saved(page, "Download CSV")).split("\n");
    expect(partHead).toBe("part,model,provider,key_id,quantity,requests,cost");
    expect(partLines).toHaveLength((await parts.getByRole("row").count()) - 1);
    await expectSound(screen);
    await screen.close();
  });

  test("filters are saved as views under a name, and usage is counted by customer and tag", async () => {
    const customer = { external_id: "customer-7", name: "Harbour Books" };
    await scene.ask("owner", "POST", "/customers", customer);
    const namesake = { ...customer, external_id: "customer-8" };
    await scene.ask("owner", "POST", "/customers", namesake);
    const sent = await scene.chat({
      model: "sandbox/chat:free",
      messages: [{ role: "user", content: "Hello" }],
      user: "customer-7",
      metadata: { team: "blue" },
    });
    expect(sent.status).toBe(200);
    await sent.text();
    const screen = await scene.open("developer", "/activity?status=failed");
    const { page } = screen;
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByLabel("Name of the filters that are set now").fill("Failures");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByRole("button", { name: "Failures", exact: true }).waitFor();
    await expectSound(screen);
    await screen.close();
    const other = await scene.open("developer", "/activity", "phone");
    await other.page.getByRole("button", { name: "Views" }).click();
    await other.page.getByRole("button", { name: "Failures", exact: true }).click();
    await other.page.waitForURL(/status=failed/);
    await other.page.getByRole("button", { name: "Views" }).click();
    await other.page.getByRole("button", { name: "Remove Failures" }).click();
    await other.page.getByText("No view yet.").waitFor();
    await expectSound(other);
    await other.go(`${scene.origin}/dashboard/usage?figure=requests&group=customer`);
    const table = other.page.getByRole("table").last();
    await table.getByText("Harbour Books (customer-7)").waitFor();
    await other.page.getByLabel("Group", { exact: true }).selectOption("tag");
    await other.page.getByLabel("Name of the tag").fill("team");
    await other.page.keyboard.press("Enter");
    await table.getByText("blue").waitFor();
    await expectSound(other);
    await other.page.getByLabel("Group", { exact: true }).selectOption("model");
    await table.getByRole("link", { name: "acme/large" }).click();
    await other.page.waitForURL(/\/activity\?model=acme%2Flarge&range=14d$/);
    for (const [group, name, filter] of [
      ["key", "Night watch", /\/activity\?key_id=key_\w+&range=14d$/],
      ["provider", "Acme Inference", /\/activity\?provider=acme&range=14d$/],
    ] as const) {
      await other.go(`${scene.origin}/dashboard/usage?figure=requests&group=${group}`);
      await table.getByRole("link", { name }).click();
      await other.page.waitForURL(filter);
    }
    await other.close();
  });

  test("an operator opens the page of a workspace and of a person, with what each is used for", async () => {
    const screen = await scene.open("operator", "/operator?group=workspaces");
    const { page } = screen;
    await page.getByRole("link", { name: "Acme & Sons" }).click();
    await page.getByRole("heading", { name: "Acme & Sons" }).waitFor();
    await page.getByRole("group", { name: "Usage by model" }).getByText("acme/large").waitFor();
    await expectSound(screen);
    expect(await geometryFindings(page)).toEqual([]);
    await screen.go(`${scene.origin}/dashboard/operator?group=people`);
    await page.getByRole("link", { name: "Owner Example" }).click();
    await page.getByRole("heading", { name: "Owner Example" }).waitFor();
    await page.getByRole("group", { name: "Usage by model" }).getByText("acme/large").waitFor();
    await expectSound(screen);
    expect(await geometryFindings(page)).toEqual([]);
    await page.getByRole("group", { name: "Organisations" }).getByRole("link").click();
    await page.getByRole("heading", { name: "Acme & Sons" }).waitFor();
    await screen.close();
  });

  test("usage is divided twice, added up and sorted; models are chosen by what they can", async () => {
    const screen = await scene.open("owner", "/usage");
    const { page } = screen;
    await page.getByLabel("Figure", { exact: true }).selectOption("requests");
    await page.getByLabel("Second group").selectOption("provider");
    await settled(page);
    const table = page.getByRole("table").last();
    await table.getByText("acme/large · Acme Inference").waitFor();
    await page.getByLabel("Sums", { exact: true }).selectOption("up");
    await table.getByRole("button", { name: /^Model · Provider/ }).click();
    const names = await table.locator("tbody td:first-child").allInnerTexts();
    expect(names.length).toBeGreaterThan(1);
    expect(names).toEqual(names.toSorted((one, other) => one.localeCompare(other)));
    await expectSound(screen);
    await screen.go(`${scene.origin}/dashboard/models`);
    const ids = (): Promise<string[]> => page.locator("tbody code").allInnerTexts();
    const reached = await ids();
    expect(reached).toContain("acme/large");
    await page.getByRole("button", { name: "Thinking" }).click();
    await page.getByLabel("Order").selectOption("context");
    expect((await ids()).length).toBeLessThan(reached.length);
    await page.getByLabel("Which").selectOption("all");
    await settled(page);
    expect((await ids()).length).toBeGreaterThan(reached.length / 2);
    await expectSound(screen);
    await screen.close();
  });

  test("a chat request opens in the playground with its model, and shows what was not translated", async () => {
    const sent = await scene.chat({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
      reasoning: { effort: "low", summary: "auto" },
    });
    await sent.text();
    const screen = await scene.open("developer", `/activity?id=${idOf(sent)}`);
    const { page } = screen;
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("heading", { name: "Lost in translation" }).waitFor();
    expect(await dialog.getByText("reasoning.summary: chat has no such field").isVisible()).toBe(
      true,
    );
    await expectSound(screen);
    await dialog.getByRole("tab", { name: "Repeat" }).click();
    await tabTo(page, "Open in the playground");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/playground\?model=/);
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    await page.getByRole("combobox", { name: "Model: acme/large", exact: true }).waitFor();
    await screen.close();
  });

  test("an embeddings request has no link to the playground", async () => {
    const key = textAt(await scene.ask("developer", "POST", "/session/playground-key"), "key");
    const sent = await fetch(`${scene.gateway.baseUrl}/embeddings`, {
      method: "POST",
      body: JSON.stringify({ model: "sandbox/embed:free", input: "Hello" }),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    await sent.text();
    const { page, close } = await scene.open("developer", `/activity?id=${idOf(sent)}`);
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("heading", { name: "Why it cost this" }).waitFor();
    expect(await dialog.getByRole("tab", { name: "Repeat" }).count()).toBe(0);
    expect(await dialog.getByRole("link", { name: "Open in the playground" }).count()).toBe(0);
    await close();
  });

  test("columns are chosen with the keyboard and saved for the person in every browser", async () => {
    const heads = (page: Page): Promise<string[]> =>
      page.getByRole("table").last().locator("thead th").allInnerTexts();
    const screen = await scene.open("developer", "/activity");
    const { page } = screen;
    const before = await heads(page);
    await tabTo(page, "Columns");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Columns" }).waitFor();
    const kept = page.waitForResponse(
      (response) => response.request().method() === "PATCH" && response.ok(),
    );
    await tabTo(page, "Provider");
    await page.keyboard.press("Space");
    await kept;
    await expectSound(screen);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const after = before.filter((head) => head !== "Provider");
    expect(after).toHaveLength(before.length - 1);
    expect(await heads(page)).toEqual(after);
    await screen.close();
    const phone = await scene.open("developer", "/activity", "phone");
    const log = phone.page.getByRole("group", { name: "Requests" });
    expect(await log.locator('td[data-label="Cost"]').count()).toBeGreaterThan(0);
    expect(await log.locator('td[data-label="Provider"]').count()).toBe(0);
    await expectSound(phone);
    await phone.close();
    const other = await scene.open("owner", "/activity");
    expect(await heads(other.page)).toEqual(before);
    await other.close();
  });

  test("figures that cannot be reloaded stay with their age and a retry button", async () => {
    const screen = await scene.open("developer", "/activity");
    const { page } = screen;
    await page.clock.install();
    const before = await rows(page).count();
    const list = /\/analytics\/generations\?/;
    const age = page.getByRole("status").filter({ hasText: /^As of \d\d:\d\d, retrying\./ });
    const fail = async (): Promise<void> => {
      await page.route(list, (route) =>
        route.fulfill({ status: 503, json: { error: { message: "The storage is away." } } }),
      );
      await page.getByRole("button", { name: "Refresh" }).click();
      await age.getByText("The storage is away.").waitFor();
    };
    await fail();
    await page.unroute(list);
    expect(await rows(page).count()).toBe(before);
    expect(new Set(screen.problems.splice(0))).toEqual(
      new Set(["503 GET /api/v1/analytics/generations"]),
    );
    await expectSound(screen);
    await page.clock.fastForward(15_000);
    await age.waitFor({ state: "detached" });
    await fail();
    const again = age.getByRole("button", { name: "Try again" });
    await again.hover();
    await page.unroute(list);
    await again.click();
    await age.waitFor({ state: "detached" });
    expect(await rows(page).count()).toBe(before);
    await screen.close();
  });

  test("show the responses of a realtime session on one time scale", async () => {
    const made = await scene.ask("owner", "POST", "/keys", { name: "Voice" });
    const path = "/v1/realtime?model=sandbox/voice:free";
    const client = await SocketClient.open(scene.gateway.origin, {
      path,
      key: textAt(made, "key"),
    });
    for (let index = 0; index < 2; index += 1) {
      client.send({ type: "response.create" });
      await client.until("response.done");
    }
    client.close();
    const models = "/analytics/generations?model=sandbox/voice:free";
    const sessionOf = async (): Promise<readonly unknown[]> =>
      listAt(await scene.ask("developer", "GET", models), "data");
    while ((await sessionOf()).length < 2) await Bun.sleep(20);
    const [first] = await sessionOf();
    const screen = await scene.open("developer", `/activity?id=${textAt(first, "id")}`);
    const dialog = screen.page.getByRole("dialog", { name: "Request" });
    const timeline = dialog.getByRole("list", { name: "2 responses" });
    await timeline.waitFor();
    await settled(screen.page);
    expect(await timeline.getByText("This response:").count()).toBe(1);
    await expectSound(screen);
    await screen.close();
  });
});
