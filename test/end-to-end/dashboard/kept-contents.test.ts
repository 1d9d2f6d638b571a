import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { type ClickHouseServer, startClickHouse } from "../../support/clickhouse.ts";
import { chatCompletion } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, textAt } from "../api/at.ts";
import { type DashboardScene, startDashboardScene } from "./dashboard-scene.ts";
import { expectSound, expectSoundInEachLook, settled } from "./screen.ts";

const payload = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const keeping = "Keep prompts and answers";

/** Saves the privacy settings with a button, and waits until they are in force. */
async function save(page: Page, button = "Save privacy"): Promise<void> {
  const saved = page.waitForResponse(
    (response) => response.request().method() === "PATCH" && response.ok(),
  );
  await page.getByRole("button", { name: button }).click();
  await saved;
  await settled(page);
}

describe.skipIf(!hasChromium)(`stored prompts and responses${missingChromium}`, () => {
  let clickhouse: ClickHouseServer;
  let scene: DashboardScene;
  beforeAll(async () => {
    clickhouse = await startClickHouse();
    const url = clickhouse.urlOf("dashboard");
    scene = await startDashboardScene(undefined, {
      runsOn: true,
      archive: { url, reads: "older", keepDays: undefined, contentDays: 3 },
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    await clickhouse.stop();
  });

  const keepContents = (isKept: boolean): Promise<unknown> =>
    scene.ask("owner", "PATCH", "/security/privacy", { zdr: false, keep_contents: isKept });
  const privacy = (): Promise<unknown> => scene.ask("owner", "GET", "/security/privacy");

  /** Asks a model something hostile that answers with the same; gives the id of the record. */
  async function ask(body: Record<string, unknown> = {}): Promise<string> {
    scene.serving.script(json(chatCompletion({ text: [`Said: ${payload}`] })));
    const answer = await scene.chat({
      model: "acme/large",
      messages: [{ role: "user", content: payload }],
      ...body,
    });
    expect(await answer.text()).toContain("Said: ");
    return `gen_${answer.headers.get("x-service-trace-id")}`;
  }

  test("are enabled with their retention shown, and disabled after a warning about deletion", async () => {
    await keepContents(false);
    const screen = await scene.open("developer", "/security");
    const { page } = screen;
    const box = page.getByLabel(keeping);
    await page.getByText(/for 3 days/).waitFor();
    expect(await box.isChecked()).toBe(false);
    await box.check();
    await save(page);
    expect(at(await privacy(), "keep_contents")).toBe(true);
    await expectSound(screen);
    await page.reload();
    await settled(page);
    expect(await box.isChecked()).toBe(true);
    await box.uncheck();
    await page.getByRole("button", { name: "Save privacy" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete kept prompts and answers" });
    await dialog.getByText(/does not bring them back/).waitFor();
    await expectSound(screen);
    expect(at(await privacy(), "keep_contents")).toBe(true);
    await save(page, "Save and delete");
    await dialog.waitFor({ state: "detached" });
    expect(at(await privacy(), "keep_contents")).toBe(false);
    await screen.close();
  });

  test("are disabled by zero data retention, which the form says before saving", async () => {
    await keepContents(true);
    const { page, close } = await scene.open("owner", "/security");
    const box = page.getByLabel(keeping);
    await page.getByLabel("Zero retention only").check();
    expect([await box.isChecked(), await box.isDisabled()]).toEqual([false, true]);
    await page.getByText(/Not with zero retention/).waitFor();
    await page.getByRole("button", { name: "Save privacy" }).click();
    await save(page, "Save and delete");
    expect(await privacy()).toMatchObject({ zdr: true, keep_contents: false });
    await keepContents(false);
    await close();
  });

  test("are shown in the request's drawer as text that is not executed", async () => {
    await keepContents(true);
    const id = await ask();
    const screen = await scene.open("developer", `/activity?id=${id}`);
    const { page } = screen;
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("tab", { name: "Content" }).click();
    await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
    await dialog.getByRole("heading", { name: "Answer", exact: true }).waitFor();
    const texts = await dialog.locator("pre code").allInnerTexts();
    expect(texts).toContain(`Said: ${payload}`);
    expect(texts.some((text) => text.includes(JSON.stringify(payload)))).toBe(true);
    expect(await dialog.locator("img, script").count()).toBe(0);
    expect(await page.evaluate("window.hacked === undefined")).toBe(true);
    await expectSoundInEachLook(screen);
    await screen.close();
  });

  test("are shown with their pictures and sounds, which are downloaded and not run", async () => {
    await keepContents(true);
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
      { type: "image_url", image_url: { url: "data:text/html,<script>window.hacked=1</script>" } },
    ];
    const id = await ask({ messages: [{ role: "user", content }] });
    const screen = await scene.open("developer", `/activity?id=${id}`);
    const { page } = screen;
    const dialog = page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("tab", { name: "Content" }).click();
    await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
    const picture = dialog.getByRole("img", { name: "Sent, number 1" });
    await picture.waitFor();
    const width = await picture.evaluate(
      (image) => (image as unknown as { naturalWidth: number }).naturalWidth,
    );
    expect(width).toBe(1);
    expect(await dialog.locator("img, audio, script").count()).toBe(1);
    await expectSound(screen);
    await screen.close();
  });

  test("that do not exist are reported with the reason", async () => {
    await keepContents(true);
    const id = await ask({ store: false });
    const screen = await scene.open("owner", `/activity?id=${id}`);
    const dialog = screen.page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("tab", { name: "Content" }).click();
    await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
    await dialog.getByText("Nothing is kept of this request.").waitFor();
    expect(screen.problems.splice(0)).toEqual(["404 GET /api/v1/generation/content"]);
    await expectSound(screen);
    await keepContents(false);
    await screen.go(screen.page.url());
    await dialog.getByRole("tab", { name: "Content" }).click();
    await dialog.getByText("This workspace does not keep prompts and answers.").waitFor();
    await dialog.getByRole("link", { name: "privacy settings" }).click();
    await screen.page.getByRole("heading", { name: "Security" }).waitFor();
    await screen.close();
  });

  test("are not offered to a member without access to security settings", async () => {
    await keepContents(true);
    const id = textAt(
      await scene.ask("owner", "GET", "/analytics/generations?limit=1"),
      "data.0.id",
    );
    const screen = await scene.open("member", `/activity?id=${id}`);
    const dialog = screen.page.getByRole("dialog", { name: "Request" });
    await dialog.getByRole("heading", { name: "Why it cost this" }).waitFor();
    await settled(screen.page);
    expect(await dialog.getByRole("tab", { name: "Content" }).count()).toBe(0);
    expect(screen.problems).toEqual([]);
    await screen.close();
  });
});

describe.skipIf(!hasChromium)(`a gateway without an archive${missingChromium}`, () => {
  test("keeps prompts and responses in its database and shows them in a request", async () => {
    const scene = await startDashboardScene(undefined, { runsOn: true });
    try {
      const screen = await scene.open("owner", "/security");
      const { page } = screen;
      await page.getByText(/encrypted, for 7 days/).waitFor();
      await page.getByLabel(keeping).check();
      await save(page);
      scene.serving.script(json(chatCompletion({ text: ["Kept here"] })));
      const answer = await scene.chat({
        model: "acme/large",
        messages: [{ role: "user", content: "A question" }],
      });
      await answer.text();
      await screen.go(`${scene.origin}/dashboard/activity`);
      await page
        .getByRole("table")
        .last()
        .locator("tbody tr")
        .first()
        .getByRole("button")
        .first()
        .click();
      const dialog = page.getByRole("dialog", { name: "Request" });
      await dialog.getByRole("tab", { name: "Content" }).click();
      await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
      await dialog.getByText("Kept here").first().waitFor();
      await expectSound(screen);
      const key = textAt(await scene.ask("owner", "POST", "/keys", { name: "Media" }), "key");
      /** Opens what is kept of a request for pictures or sound. */
      const kept = async (path: string, body: object): Promise<void> => {
        const made = await fetch(scene.gateway.baseUrl + path, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        expect(made.status).toBe(200);
        await made.arrayBuffer();
        await screen.follow(`/activity?id=gen_${made.headers.get("x-service-trace-id")}`);
        await dialog.getByRole("tab", { name: "Content" }).click();
        await dialog.getByRole("button", { name: "Show prompt and answer" }).click();
      };
      await kept("/images/generations", { model: "sandbox/image:free", prompt: "A mill", n: 2 });
      const pictures = dialog.getByRole("img", { name: /^Made, number / });
      await pictures.nth(1).waitFor();
      const width = await pictures
        .first()
        .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth);
      expect(width).toBeGreaterThan(100);
      await dialog.getByText("A mill").first().waitFor();
      await expectSound(screen);
      const spoken = { model: "sandbox/speech:free", voice: "alloy", input: "Good night" };
      await kept("/audio/speech", { ...spoken, response_format: "wav" });
      const sound = dialog.getByLabel("Sound 1, made");
      await sound.waitFor();
      const seconds = await sound.evaluate(async (element) => {
        const audio = element as unknown as {
          duration: number;
          readyState: number;
          addEventListener(name: string, act: () => void, options: { once: boolean }): void;
        };
        if (audio.readyState === 0)
          await new Promise<void>((resolve) =>
            audio.addEventListener("loadedmetadata", () => resolve(), { once: true }),
          );
        return audio.duration;
      });
      expect(seconds).toBeGreaterThan(0);
      await expectSound(screen);
      await screen.close();
    } finally {
      await scene.stop();
    }
  }, 240_000);
});
