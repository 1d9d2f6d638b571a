import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hasChromium, missingChromium } from "../../support/chromium.ts";
import { textAt } from "../api/at.ts";
import { startDashboardScene, type DashboardScene } from "./dashboard-scene.ts";
import { act, expectSound } from "./screen.ts";

describe.skipIf(!hasChromium)(`the screens of batches and files${missingChromium}`, () => {
  let scene: DashboardScene;
  let key = "";
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { runsOn: true });
    key = textAt(await scene.ask("owner", "POST", "/keys", { name: "night" }), "key");
  }, 240_000);
  afterAll(() => scene.stop());

  const ask = async (path: string, init: RequestInit): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${key}`, ...(init.headers as object) };
    const answer = await fetch(scene.gateway.baseUrl + path, { ...init, headers });
    return (await answer.json()) as Record<string, unknown>;
  };

  async function submit(model: string): Promise<string> {
    const lines = ["a", "b"].map((id) =>
      JSON.stringify({
        custom_id: id,
        method: "POST",
        url: "/v1/chat/completions",
        body: {
          model: id === "a" ? model : "acme/none",
          max_tokens: 9,
          messages: [{ role: "user", content: "Hello" }],
        },
      }),
    );
    const form = new FormData();
    form.append("purpose", "batch");
    form.append("file", new File([lines.join("\n")], "night.jsonl"));
    const file = await ask("/files", { method: "POST", body: form });
    const batch = await ask("/batches", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        input_file_id: file["id"],
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      }),
    });
    return String(batch["id"]);
  }

  test("a batch is shown with its progress, cost, failures and downloads", async () => {
    const id = await submit("acme/large");
    const screen = await scene.open("owner", "/batches", "phone");
    await screen.page.getByRole("link", { name: id }).click();
    await screen.page.getByRole("button", { name: "Download answers" }).waitFor();
    await screen.page.getByText("2 of 2, 1 failed").waitFor();
    expect(await scene.ask("owner", "GET", `/batches/${id}`)).toMatchObject({
      failures: { "404": 1 },
    });
    await screen.page.getByText("404", { exact: true }).waitFor();
    await expectSound(screen);
    await screen.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    // Pages on plain HTTP have no clipboard, and copy what is selected.
    await screen.page.evaluate(
      "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })",
    );
    await screen.page.getByRole("button", { name: `Copy ${id}` }).click();
    await screen.page.getByRole("button", { name: `Copied ${id}` }).waitFor();
    await screen.page.evaluate("delete navigator.clipboard");
    expect(await screen.page.evaluate("navigator.clipboard.readText()")).toBe(id);
    await screen.context.clearPermissions();
    const download = screen.page.waitForEvent("download");
    await screen.page.getByRole("button", { name: "Download errors" }).click();
    expect((await download).suggestedFilename()).toBe(`${id}.errors.jsonl`);
    await screen.page.getByRole("link", { name: "Show them in the activity" }).click();
    await screen.page
      .getByRole("row", { name: /acme\/large/ })
      .getByRole("button")
      .first()
      .click();
    const request = screen.page.getByRole("dialog", { name: "Request" });
    await request.getByRole("link", { name: id }).waitFor();
    await screen.close();
  }, 240_000);

  test("files are uploaded, listed with the storage, and deleted", async () => {
    const screen = await scene.open("owner", "/files", "phone");
    await screen.page.getByText("of 10.0 GB").waitFor();
    await screen.page.getByRole("button", { name: "Upload file" }).first().click();
    const dialog = screen.page.getByRole("dialog", { name: "Upload file" });
    await dialog
      .getByLabel("File")
      .setInputFiles({ name: "prices.csv", mimeType: "text/csv", buffer: Buffer.from("bolt,1") });
    expect(await dialog.getByLabel("For").inputValue()).toBe("user_data");
    await expectSound(screen);
    await dialog.getByRole("button", { name: "Upload file" }).click();
    await screen.page.getByRole("row", { name: /prices\.csv user data 6 B/ }).waitFor();
    await expectSound(screen);
    const row = screen.page.getByRole("row", { name: /night\.jsonl/ }).first();
    await act(row, "Delete");
    await screen.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await screen.page.getByText("night.jsonl").first().waitFor({ state: "hidden" });
    await screen.close();
  }, 240_000);
});
