import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { at, listAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { expectSound, expectSoundInEachLook, settled, tabTo, pick } from "./screen.ts";

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Chooses a model by typing its name; `column` counts from 1 where there are several. */
async function choose(page: Page, model: string, column?: number): Promise<void> {
  const label = column === undefined ? "Model" : `Model ${column}`;
  await page.getByRole("combobox", { name: new RegExp(`^${label}: `) }).click();
  await page.getByLabel("Search models").fill(model);
  await page.getByRole("option", { name: model }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("combobox", { name: `${label}: ${model}`, exact: true }).waitFor();
}
/** Opens the settings of the only column. */
const openSettings = (page: Page): Promise<void> =>
  page.getByRole("button", { name: /^Settings of / }).click();
const closeSettings = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Close" }).click();
const ask = async (page: Page, text: string, model?: string): Promise<void> => {
  if (model !== undefined) await choose(page, model);
  await page.getByLabel("Message").fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
};
const done = (page: Page): Promise<void> =>
  page.getByRole("link", { name: "Open the record" }).first().waitFor();

describe.skipIf(!hasChromium)(`the playground${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
  }, 240_000);
  afterAll(() => scene.stop());

  test("answers a message sent with the keyboard only, with its figures and a link to the record", async () => {
    const screen = await scene.open("developer", "/playground");
    const { page } = screen;
    await tabTo(page, "Message");
    await page.keyboard.type("What is it?");
    await page.keyboard.press("Enter");
    await done(page);
    expect(await page.getByText('You wrote: "What is it?"').isVisible()).toBe(true);
    await page.getByText("by Sandbox (simulated)", { exact: true }).waitFor();
    for (const name of ["Route", "First token", "Total", "Tokens", "Cost"]) {
      expect(
        await page.getByRole("definition").filter({ hasText: /\S/ }).count(),
      ).toBeGreaterThanOrEqual(5);
      expect(await page.getByRole("term").filter({ hasText: name }).first().isVisible()).toBe(true);
    }
    await expectSound(screen);
    await tabTo(page, "Open the record");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Request" }).waitFor();
    await settled(page);
    expect(await page.getByRole("dialog").getByText("sandbox/chat:free").first().isVisible()).toBe(
      true,
    );
    await screen.close();
  });

  test("stops a response while it streams and keeps what arrived", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    await ask(page, "Slowly. sandbox:tokens=4000 sandbox:token_delay_ms=50");
    await page.getByText("[simulated by").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("stopped", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Send", exact: true }).isVisible()).toBe(true);
    await close();
  });

  test("compares two models side by side, with the provider and the cost", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    await page.getByRole("button", { name: "Compare with another model" }).click();
    await choose(page, "acme/large", 1);
    await choose(page, "sandbox/chat:free", 2);
    await page.getByLabel("Message").fill("Compare");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("link", { name: "Open the record" }).nth(1).waitFor();
    const first = page.getByRole("region", { name: "acme/large" });
    await first.getByText(/^by .*Acme Inference$/).waitFor();
    expect(await first.getByText(/^\$0\.0+[1-9]/).isVisible()).toBe(true);
    expect(
      await page.getByRole("region", { name: "sandbox/chat:free" }).getByText("$0.00").isVisible(),
    ).toBe(true);
    await close();
  });

  test("marks differing words of two responses, with the keyboard only", async () => {
    scene.serving.script(chatStream({ text: ["The quick brown", " fox jumps."] }));
    const screen = await scene.open("developer", "/playground");
    const { page } = screen;
    await page.getByRole("button", { name: "Compare with another model" }).click();
    await choose(page, "acme/large", 1);
    await choose(page, "sandbox/chat:free", 2);
    await page.getByLabel("Message").fill("The quick red fox jumps.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("link", { name: "Open the record" }).nth(1).waitFor();
    await tabTo(page, "Show the difference");
    await page.keyboard.press("Enter");
    const [first, second] = ["acme/large", "sandbox/chat:free"].map((model) =>
      page.getByRole("region", { name: `Only in ${model} is marked` }),
    );
    await first?.locator("del").first().waitFor();
    expect((await first?.locator("del").allInnerTexts())?.join(" ")).toContain("brown");
    expect((await second?.locator("ins").allInnerTexts())?.join(" ")).toContain("red");
    const unmarked = (await first?.locator("span").allInnerTexts())?.join("") ?? "";
    for (const word of ["quick", "fox", "jumps"]) expect(unmarked).toContain(word);
    expect(unmarked).not.toContain("brown");
    await expectSoundInEachLook(screen);
    await screen.close();
  });

  test("sends images, tools, a response format, parameters and provider rules", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    await page
      .getByLabel("Pictures and documents")
      .setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: pixel });
    await page.getByRole("button", { name: "dot.png: remove" }).waitFor();
    await openSettings(page);
    await page.getByLabel("Temperature").fill("0.5");
    await page.getByLabel("Answer format").selectOption("json_object");
    await pick(page, "Never these providers", /broken/);
    const tool = {
      type: "function",
      function: { name: "look", parameters: { type: "object", properties: {} } },
    };
    await page.getByLabel("Tools").fill(JSON.stringify([tool]));
    await page.getByLabel("System prompt").fill("Be brief.");
    await closeSettings(page);
    const [failedBefore, servedBefore] = [
      scene.failing.requests.length,
      scene.serving.requests.length,
    ];
    await ask(page, "Look at this", "acme/large");
    await done(page);
    expect(scene.failing.requests.length).toBe(failedBefore);
    expect(scene.serving.requests.length).toBe(servedBefore + 1);
    expect(scene.serving.requests.at(-1)?.json()).toMatchObject({
      temperature: 0.5,
      response_format: { type: "json_object" },
      tools: [tool],
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look at this" },
            {
              type: "image_url",
              image_url: { url: `data:image/png;base64,${pixel.toString("base64")}` },
            },
          ],
        },
      ],
    });
    await close();
  });

  test("sends a request with a preset that is chosen as the model", async () => {
    await scene.ask("developer", "POST", "/presets", {
      slug: "brief",
      name: "Brief",
      config: { model: "acme/large", system: "Be brief.", provider: { ignore: ["broken"] } },
    });
    const { page, close } = await scene.open("developer", "/playground");
    const servedBefore = scene.serving.requests.length;
    await ask(page, "Hello", "@preset/brief");
    await done(page);
    expect(scene.serving.requests.length).toBe(servedBefore + 1);
    expect(scene.serving.requests.at(-1)?.json()).toMatchObject({
      model: "large-v2",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    });
    await close();
  });

  test("sends a PDF with its name", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    const pdf = writePdf([{ texts: [{ text: "The sum is 42.", x: 72, y: 700 }] }]);
    await page
      .getByLabel("Pictures and documents")
      .setInputFiles({ name: "sum.pdf", mimeType: "application/pdf", buffer: Buffer.from(pdf) });
    await page.getByRole("button", { name: "sum.pdf: remove" }).waitFor();
    await ask(page, "What is the sum?", "acme/large");
    await done(page);
    expect(scene.serving.requests.at(-1)?.json()).toMatchObject({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is the sum?" },
            {
              type: "file",
              file: {
                filename: "sum.pdf",
                file_data: `data:application/pdf;base64,${Buffer.from(pdf).toString("base64")}`,
              },
            },
          ],
        },
      ],
    });
    await close();
  });

  test("renders Markdown, thinking folded, and goes back to change what was asked", async () => {
    const text = "A **bold** word.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```ts\nlet x;\n```\n";
    scene.serving.script(
      chatStream({ text: [text, "<img src=x onerror=alert(1)> [no](javascript:alert(1))"] }),
    );
    const screen = await scene.open("developer", "/playground");
    const { page } = screen;
    await ask(page, "Say it", "acme/large");
    await done(page);
    const said = page.getByRole("region", { name: "acme/large" });
    expect(await said.locator("strong").innerText()).toBe("bold");
    expect(await said.locator("td").allInnerTexts()).toEqual(["1", "2"]);
    expect(await said.locator("pre code").innerText()).toBe("let x;");
    expect(await said.locator("img, [href^=javascript]").count()).toBe(0);
    expect(await said.getByText("<img src=x onerror=alert(1)>").count()).toBe(1);
    await expectSound(screen);
    scene.serving.script(chatStream({ text: ["Another answer."] }));
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edited message").fill("Say it otherwise");
    await page.getByRole("button", { name: "Send the change" }).click();
    await page.getByText("Another answer.").waitFor();
    await done(page);
    expect(await page.getByText("2 of 2").isVisible()).toBe(true);
    expect(scene.serving.requests.at(-1)?.json()).toMatchObject({
      messages: [{ role: "user", content: "Say it otherwise" }],
    });
    await page.getByRole("button", { name: "Version before" }).click();
    await said.locator("strong").waitFor();
    await screen.close();
  });

  test("gives each column settings of its own, and keeps one as a preset", async () => {
    scene.serving.script(chatStream({ text: ["Fine."] }));
    const { page, close } = await scene.open("developer", "/playground");
    await choose(page, "acme/large");
    await openSettings(page);
    await page.getByLabel("Temperature").fill("0.1");
    await pick(page, "Never these providers", /broken/);
    await closeSettings(page);
    await page.getByRole("button", { name: "Actions of acme/large" }).click();
    await page.getByRole("menuitem", { name: "Duplicate" }).click();
    await page.getByRole("button", { name: "Settings of acme/large" }).nth(1).click();
    await page.getByLabel("Temperature").fill("0.9");
    await closeSettings(page);
    const before = scene.serving.requests.length;
    await ask(page, "Hello");
    await page.getByRole("link", { name: "Open the record" }).nth(1).waitFor();
    expect(
      scene.serving.requests
        .slice(before)
        .map((request) => at(request.json(), "temperature"))
        .toSorted(),
    ).toEqual([0.1, 0.9]);
    await page.getByRole("button", { name: "Actions of acme/large" }).first().click();
    await page.getByRole("menuitem", { name: "Save as preset" }).click();
    await page.getByLabel("Name").fill("Cold & exact");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByRole("combobox", { name: "Model 1: @preset/cold-exact" }).waitFor();
    expect(at(await scene.ask("developer", "GET", "/presets/cold-exact"), "config")).toMatchObject({
      model: "acme/large",
      temperature: 0.1,
    });
    await close();
  });

  test("shows tool calls, and reports an invalid field before sending", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    await openSettings(page);
    await page.getByLabel("Tools").fill("[{");
    await closeSettings(page);
    await ask(page, "Call it", "sandbox/chat:free");
    expect(await page.getByRole("alert").innerText()).toStartWith("Tools is not JSON");
    expect(await page.getByLabel("Message").inputValue()).toBe("Call it");
    await openSettings(page);
    await page
      .getByLabel("Tools")
      .fill(
        '[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]',
      );
    await closeSettings(page);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText(/^look\(/).waitFor();
    await close();
  });

  test("shows a provider's error with the trace id", async () => {
    const { page, close } = await scene.open("developer", "/playground");
    await ask(page, "Fail", "broken/small");
    const alert = page.getByRole("alert");
    await alert.waitFor();
    expect(await alert.locator("code").innerText()).toMatch(/^[0-9a-f]{32}$/);
    await close();
  });

  test("exports a request as code without a key, and shares a draft by a link", async () => {
    const screen = await scene.open("developer", "/playground");
    const { page } = screen;
    await ask(page, "It's a draft", "sandbox/chat:free");
    await done(page);
    await page.getByRole("button", { name: "Code" }).click();
    for (const [client, expected] of [
      ["curl", "curl "],
      ["OpenAI SDK", 'from "openai"'],
      ["Anthropic SDK", "@anthropic-ai/sdk"],
      ["AI SDK", "@ai-sdk/openai"],
    ] as const) {
      await page.getByRole("tab", { name: client, exact: true }).click();
      const shown = page.locator("pre", { hasText: expected });
      await shown.waitFor();
      const code = await shown.innerText();
      expect(code).toContain("SWITCHYARD_KEY");
      expect(code).toContain(scene.origin);
    }
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByLabel("Message").fill("It's a draft");
    await page.getByRole("button", { name: "Share as link" }).click();
    const link = page.url();
    expect(new URL(link).hash).toMatch(/^#p=[\w-]+$/);
    const other = await scene.open("member", link.slice(`${scene.origin}/dashboard`.length));
    expect(await other.page.getByLabel("Message").inputValue()).toBe("It's a draft");
    await other.page
      .getByRole("combobox", { name: "Model: sandbox/chat:free", exact: true })
      .waitFor();
    await other.close();
    const kept = String(
      await page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.documentElement.outerHTML])",
      ),
    );
    expect(kept).not.toContain("sk-svc-");
    expect(scene.gateway.logLines.join("\n")).not.toMatch(/sk-svc-(?:at|v1)-\w{20}/);
    await screen.close();
  });

  test("stores conversations when the workspace does, and continues one", async () => {
    await scene.ask("owner", "PATCH", "/conversations/settings", { keep: true });
    const screen = await scene.open("developer", "/playground");
    const { page } = screen;
    await ask(page, "First words", "sandbox/chat:free");
    await done(page);
    await page.getByLabel("Kept conversations").waitFor();
    await screen.go(`${scene.origin}/dashboard/playground`);
    const [newest] = listAt(await scene.ask("developer", "GET", "/conversations"), "data");
    await page.getByLabel("Kept conversations").selectOption(String(at(newest, "id")));
    await page.getByText('You wrote: "First words"').waitFor();
    await ask(page, "Second words", "sandbox/chat:free");
    await page.getByText('You wrote: "Second words"').waitFor();
    await done(page);
    // What was said before goes along: a request of a system-free conversation then has three
    // messages.
    await page.getByRole("button", { name: "Code" }).last().click();
    expect(await page.locator("pre").first().innerText()).toContain('"content":"First words"');
    await screen.close();
    await scene.ask("owner", "PATCH", "/conversations/settings", { keep: false });
    const kept = async (): Promise<number> =>
      listAt(await scene.ask("developer", "GET", "/conversations"), "data").length;
    const before = await kept();
    const off = await scene.open("developer", "/playground");
    await ask(off.page, "Off the record", "sandbox/chat:free");
    await done(off.page);
    expect(await kept()).toBe(before);
    await off.close();
  });
});
