import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { recordOf, attemptOf, settledUnit } from "../../support/generation-records.ts";
import {
  axeFindings,
  hasChromium,
  missingChromium,
  sidewaysPixels,
} from "../../support/chromium.ts";
import { at, listAt } from "../api/at.ts";
import { engines } from "../api/two-workspaces.ts";
import { startPageScene, type PageScene } from "./page-scene.ts";
import { acme, provider, testManagementKey } from "../../support/gateway.ts";

const dayMs = 86_400_000;
const dead = "http://127.0.0.1:9";

describe.skipIf(!hasChromium).each(engines)(
  `public pages, on %s${missingChromium}`,
  (_, freshUrl) => {
    let scene: PageScene;
    const yesterdayMs = Date.now() - dayMs;
    beforeAll(async () => {
      scene = await startPageScene(await freshUrl(), {
        providers: [
          acme(dead),
          provider({
            id: "weak",
            name: "Weak Works",
            base_url: dead,
            dialect: "openai-chat",
            api_key: "k",
            models: [
              { id: "acme/small<b>", pricing: { prompt: "1", completion: "2" } },
              {
                id: "weak/long_name_of_one_model:free",
                pricing: { prompt: "1", completion: "2" },
              },
            ],
          }),
        ],
      });
      const { app } = scene.gateway;
      for (const [id, outcome] of [
        ["acme", "served"],
        ["acme", "served"],
        ["weak", "served"],
        ["weak", "failed"],
      ] as const) {
        const attempt = attemptOf({
          provider: id,
          outcome,
          ...(outcome === "failed" ? { status: 500, reason: "upstream_error" } : {}),
        });
        await app.storage.commits.commit(
          settledUnit(recordOf({ createdAtMs: yesterdayMs, provider: id, attempts: [attempt] })),
        );
      }
    }, 240_000);
    afterEach(() => scene.putBackWindows());
    afterAll(() => scene.stop());

    test("the history has 90 days of each provider and is cacheable", async () => {
      const answer = await fetch(`${scene.gateway.baseUrl}/health/history?days=90`);
      expect([answer.status, answer.headers.get("cache-control")]).toEqual([
        200,
        expect.stringContaining("public"),
      ]);
      const history: unknown = await answer.json();
      expect(
        listAt(history, "providers").map((each) => [
          at(each, "id"),
          at(each, "uptime"),
          listAt(each, "buckets").length,
        ]),
      ).toEqual([
        ["acme", 1, 90],
        ["weak", 0.5, 90],
      ]);
      const yesterday = new Date(yesterdayMs).toISOString().slice(0, 10);
      const buckets = listAt(history, "providers.1.buckets");
      expect(buckets.find((bucket) => at(bucket, "date") === yesterday)).toMatchObject({
        attempts: 2,
        failures: 1,
        uptime: 0.5,
      });
      for (const days of ["0", "91", "x"])
        expect((await fetch(`${scene.gateway.baseUrl}/health/history?days=${days}`)).status).toBe(
          400,
        );
    });

    test("/status summarises the service in one sentence, without a session or JavaScript", async () => {
      for (const look of [
        { colorScheme: "light" },
        { colorScheme: "dark", viewport: { width: 390, height: 844 } },
      ] as const) {
        const { page, context } = await scene.open({ ...look, javaScriptEnabled: true });
        const answer = await page.goto(`${scene.origin}/status`);
        expect([answer?.status(), answer?.headers()["cache-control"]]).toEqual([
          200,
          expect.stringContaining("public"),
        ]);
        expect(answer?.headers()["set-cookie"]).toBeUndefined();
        expect(await page.getByRole("img", { name: "Weak Works, day by day" }).isVisible()).toBe(
          true,
        );
        expect(await page.getByText("Weak Works: 50.00 %").isVisible()).toBe(true);
        expect([await axeFindings(page), await sidewaysPixels(page)]).toEqual([[], 0]);
        await page.getByRole("link", { name: "models" }).click();
        const model = page.getByRole("row").filter({ hasText: "acme/small<b>" }).getByRole("link");
        const path = await model.getAttribute("href");
        await model.click();
        await page.waitForURL(new URL(path ?? "", scene.origin).href);
        expect([await axeFindings(page), await sidewaysPixels(page)]).toEqual([[], 0]);
        expect(await page.getByText("acme/small<b>", { exact: true }).isVisible()).toBe(true);
        await context.close();
      }
      expect((await fetch(`${scene.origin}/catalog/no/such`)).status).toBe(404);
    });

    test("/catalog finds and sorts models", async () => {
      const { page, context } = await scene.open({
        viewport: { width: 390, height: 844 },
        javaScriptEnabled: true,
      });
      const ids = (): Promise<string[]> => page.locator("tbody code").allInnerTexts();
      await page.goto(`${scene.origin}/catalog`);
      const all = await ids();
      expect(all.length).toBeGreaterThan(2);
      const brokenPieces = await page.evaluate(`[...document.querySelectorAll("tbody code")]
        .flatMap((code) => [...code.childNodes])
        .filter((node) => {
          const range = document.createRange();
          range.selectNodeContents(node);
          return node.nodeType === Node.TEXT_NODE && range.getClientRects().length > 1;
        })
        .map((node) => node.data)`);
      expect(brokenPieces).toEqual([]);
      expect(all).toContain("weak/long_name_of_one_model:free");
      await page.getByRole("link", { name: "Output, 1M tokens" }).click();
      await page.waitForURL("**/catalog?sort=output");
      const sorted = await ids();
      expect(sorted.toSorted()).toEqual(all.toSorted());
      expect(sorted.indexOf("acme/large")).toBeLessThan(sorted.indexOf("acme/small<b>"));
      await page.getByLabel("Find models").fill("small chat");
      await page.getByRole("button", { name: "Find" }).click();
      await page.waitForURL("**/catalog?q=small+chat&sort=output");
      expect(await ids()).toEqual(["acme/small<b>"]);
      expect([await axeFindings(page), await sidewaysPixels(page)]).toEqual([[], 0]);
      await page.getByLabel("Find models").fill("<b>none</b>");
      await page.getByRole("button", { name: "Find" }).click();
      await page.getByText("No model matches.").waitFor();
      await page.getByRole("link", { name: "Show all models" }).click();
      expect(await ids()).toEqual(all);
      await context.close();
    });

    test("an incident is one entry from start to end, on the page and in the feed", async () => {
      for (let failed = 0; failed < 10; failed += 1) {
        await (
          await scene.gateway.post("/chat/completions", {
            model: "acme/small<b>",
            messages: [{ role: "user", content: "Hi" }],
          })
        ).text();
      }
      const open = at(
        await (await fetch(`${scene.gateway.baseUrl}/health/history`)).json(),
        "incidents.0",
      );
      expect(open).toMatchObject({ upstream_id: "weak", ended_at: null });
      const cleared = await fetch(`${scene.gateway.baseUrl}/admin/upstreams/weak/clear`, {
        method: "POST",
        headers: { authorization: `Bearer ${testManagementKey}` },
      });
      expect(cleared.status).toBe(200);
      const history: unknown = await (
        await fetch(`${scene.gateway.baseUrl}/health/history`)
      ).json();
      expect(listAt(history, "incidents")).toHaveLength(1);
      expect(at(history, "incidents.0.ended_at")).toBeString();
      const feed = await fetch(`${scene.origin}/status.atom`);
      expect(feed.headers.get("content-type")).toStartWith("application/atom+xml");
      const text = await feed.text();
      expect(text.match(/<entry>/g)).toHaveLength(1);
      expect(text).toContain("<title>Weak Works was ");
    });
  },
);
