import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound } from "./screen.ts";

describe.skipIf(!hasChromium)(`the screens of runs${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("a run is listed, shown as a tree and extended", async () => {
    const made = await scene.ask("owner", "POST", "/runs", { name: "nightly", limit: 0.5 });
    const secret = textAt(made, "key");
    const id = textAt(made, "data.id");
    const inner = await fetch(`${scene.gateway.baseUrl}/runs`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: JSON.stringify({ name: "agent", limit: 0.2 }),
    });
    await fetch(`${scene.gateway.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${textAt(await inner.json(), "key")}` },
      body: JSON.stringify({
        model: "acme/large",
        messages: [{ role: "user", content: "Hello" }],
        max_tokens: 7,
      }),
    });
    const screen = await scene.open("owner", "/runs", "phone");
    await screen.page.getByRole("link", { name: "nightly" }).click();
    await screen.page.getByText("› agent").waitFor();
    await screen.page.getByRole("img", { name: /^began after/ }).waitFor();
    await expectSound(screen);
    await screen.page.getByLabel("Add, in USD").fill("0.25");
    await screen.page.getByRole("button", { name: "Add", exact: true }).click();
    await screen.page.getByText("of $0.75", { exact: false }).first().waitFor();
    await screen.close();
    const shown = await scene.ask("owner", "GET", `/runs/${id}`);
    expect(shown).toMatchObject({ data: { limit: 0.75 } });
  }, 240_000);

  test("a person adds to an exhausted run on a phone, and its request goes through", async () => {
    const made = await scene.ask("owner", "POST", "/runs", { name: "errand", limit: 0.0000001 });
    const ask = (): Promise<Response> =>
      fetch(`${scene.gateway.baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${textAt(made, "key")}` },
        body: JSON.stringify({
          model: "acme/large",
          messages: [{ role: "user", content: "Hello" }],
          max_tokens: 7,
        }),
      });
    const refused = await ask();
    expect(refused.status).toBe(402);
    const url = new URL(textAt(await refused.json(), "error.metadata.resume_url"));
    const screen = await scene.open("owner", "/runs", "phone");
    const { page } = screen;
    await screen.go(`${scene.origin}${url.pathname}`);
    await page.getByRole("heading", { name: "Run errand" }).waitFor();
    expect(await page.evaluate("innerWidth")).toBe(390);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await expectSound(screen);
    await page.getByLabel("Add, in USD").fill("0.25");
    await page.getByRole("button", { name: "Add and go on" }).click();
    await page.getByText("Added 0.25 USD", { exact: false }).waitFor();
    await expectSound(screen);
    expect((await ask()).status).toBe(200);
    await screen.close();
  }, 240_000);
});
