import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { hasChromium, missingChromium, sidewaysPixels } from "../../support/chromium.ts";
import { acme, provider } from "../../support/gateway.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import { act, expectSound, settled } from "./screen.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Chooses a model by typing its name. */
async function choose(page: Page, model: string): Promise<void> {
  await page.getByRole("combobox", { name: /^Model: / }).click();
  await page.getByLabel("Search models").fill(model);
  await page.getByRole("option", { name: model }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: `Model: ${model}`, exact: true }).waitFor();
}

const send = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Send", exact: true }).click();

/** The answer of a turn, counted from 1, once it has come. */
async function answerOf(page: Page, turn: number): Promise<Locator> {
  const shown = page.getByRole("region", { name: `Turn ${turn}`, exact: true });
  await shown.getByRole("link", { name: "Open the record" }).waitFor();
  return shown;
}

/** What these tests use of the elements of a page, whose types are the browser's. */
interface Picture {
  decode(): Promise<void>;
  naturalWidth: number;
}
interface Sound {
  muted: boolean;
  duration: number;
  play(): Promise<void>;
  pause(): void;
  addEventListener(name: string, act: (event: unknown) => void, options: { once: boolean }): void;
}

/** The width of a picture, once it is decoded. */
const widthOf = (picture: Locator): Promise<number> =>
  picture.evaluate(async (element) => {
    const image = element as unknown as Picture;
    await image.decode();
    return image.naturalWidth;
  });

/** Plays a sound until its time has moved, and returns its length in seconds. */
const played = (sound: Locator): Promise<number> =>
  sound.evaluate(async (element) => {
    const audio = element as unknown as Sound;
    audio.muted = true;
    await audio.play();
    await new Promise((resolve) => audio.addEventListener("timeupdate", resolve, { once: true }));
    audio.pause();
    return audio.duration;
  });

describe.skipIf(!hasChromium)(`pictures and sound in the playground${missingChromium}`, () => {
  let upstream: FaultUpstream;
  let scene: DashboardScene;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    scene = await startDashboardScene(undefined, {
      runsOn: true,
      seeded: false,
      providers: [
        acme(upstream.baseUrl),
        provider({
          id: "studio",
          name: "Studio",
          base_url: upstream.baseUrl,
          dialect: { images: "openai-images" },
          api_key: "upstream-secret",
          models: [{ id: "studio/draw", surface: "images", pricing: { image: "0.04" } }],
        }),
      ],
    });
  }, 240_000);
  afterAll(async () => {
    await scene.stop();
    upstream.stop();
  });

  test("are made, changed, spoken and recorded in one conversation", async () => {
    const screen = await scene.open("developer", "/playground", "phone");
    const { page } = screen;
    await choose(page, "sandbox/image:free");
    await page.getByRole("button", { name: /^Settings of / }).click();
    await page.getByLabel("Size").fill("512x512");
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByLabel("Message", { exact: true }).fill("a lighthouse");
    await send(page);
    const made = await answerOf(page, 1);
    const picture = made.getByRole("img", { name: "Picture 1 of 1: a lighthouse" });
    expect(await widthOf(picture)).toBe(512);
    await made.getByRole("button", { name: "Change this picture" }).click();
    await page.getByRole("button", { name: "picture.png: remove" }).waitFor();
    await page.getByLabel("Message", { exact: true }).fill("the same at night");
    await send(page);
    const changed = await answerOf(page, 2);
    expect(await changed.getByRole("img", { name: "picture.png" }).count()).toBe(1);
    expect(await widthOf(changed.getByRole("img", { name: /the same at night/ }))).toBeGreaterThan(
      0,
    );
    await choose(page, "sandbox/speech:free");
    await page.getByLabel("Message", { exact: true }).fill("Good evening");
    await send(page);
    const spoken = await answerOf(page, 3);
    expect(await played(spoken.getByLabel("Speech: Good evening"))).toBeGreaterThan(0);
    await choose(page, "sandbox/transcribe:free");
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Record", exact: true }).click();
    await page.getByText("0:01", { exact: true }).waitFor();
    expect(await sidewaysPixels(page)).toBe(0);
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByRole("button", { name: "recording.wav: remove" }).waitFor();
    await send(page);
    const heard = await answerOf(page, 4);
    expect(await played(heard.getByLabel("recording.wav"))).toBeGreaterThan(0.5);
    expect(await heard.innerText()).toMatch(/The sandbox heard \d+ bytes/);
    await expectSound(screen);
    // The record of what was made, by part.
    await heard.getByRole("link", { name: "Open the record" }).click();
    await page.getByRole("dialog", { name: "Request" }).waitFor();
    await settled(page);
    await screen.close();
  }, 240_000);

  test("are charged by part, which the record shows with the units of each", async () => {
    upstream.script(json({ created: 1, data: [{ b64_json: pixel }] }));
    const screen = await scene.open("developer", "/playground?model=studio/draw", "dark");
    const { page } = screen;
    await page.getByLabel("Message", { exact: true }).fill("a harbour");
    await send(page);
    const made = await answerOf(page, 1);
    await expectSound(screen);
    await made.getByRole("link", { name: "Open the record" }).click();
    const drawer = page.getByRole("dialog", { name: "Request" });
    await drawer.getByRole("row", { name: /Pictures made 1 \$0\.04.* each \$0\.04/ }).waitFor();
    // Nothing of a picture is kept beside what it cost.
    expect(await drawer.locator("img, audio").count()).toBe(0);
    await expectSound(screen);
    await screen.close();
  }, 240_000);

  test("prompts of the hub are saved back as another version", async () => {
    const prompt = await scene.ask("developer", "POST", "/prompts", {
      title: "Night clerk",
      description: "Answers at night",
      category: "support",
      body: "Be brief.",
      visibility: "workspace",
    });
    const screen = await scene.open("developer", "/hub");
    const { page } = screen;
    await page.getByRole("button", { name: "Night clerk" }).click();
    await page.getByRole("link", { name: "Open in the playground" }).click();
    await page.getByRole("button", { name: /^Settings of .*/ }).click();
    expect(await page.getByLabel("System prompt").inputValue()).toBe("Be brief.");
    await page.getByLabel("System prompt").fill("Be brief and kind.");
    await page.getByRole("button", { name: "Close" }).click();
    await act(page.locator("main"), "Save prompt to the hub");
    const dialog = page.getByRole("dialog", { name: "Save the system prompt to the hub" });
    await dialog.getByLabel("Save as").waitFor();
    await expectSound(screen);
    await dialog.getByRole("button", { name: "Save changes" }).click();
    await dialog.waitFor({ state: "detached" });
    const id = (prompt as { id: string }).id;
    expect(await scene.ask("developer", "GET", `/prompts/${id}`)).toMatchObject({
      version: 2,
      body: "Be brief and kind.",
    });
    await screen.close();
  }, 240_000);
});
