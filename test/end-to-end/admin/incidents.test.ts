import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { engines } from "../api/two-workspaces.ts";
import { startOperatorScene, type OperatorScene } from "./operator-scene.ts";

describe.each(engines)("incidents that operators describe, on %s", (_, freshUrl) => {
  let scene: OperatorScene;
  beforeAll(async () => {
    scene = await startOperatorScene(await freshUrl());
  }, 240_000);
  afterAll(() => scene.stop());

  const page = async (path: string): Promise<string> =>
    (await fetch(scene.gateway().origin + path)).text();

  test("are on the status page, in its feed and in the history, with each update", async () => {
    const made = await scene.owner.json("POST", "/admin/incidents", {
      title: "Slow answers <in> Europe",
      text: "We are looking into it.",
    });
    const id = textAt(made, "id");
    expect(made).toMatchObject({ object: "incident", state: "investigating", resolved_at: null });
    const told = await scene.owner.json("PATCH", `/admin/incidents/${id}`, {
      text: "A provider is slow; requests go elsewhere.",
      state: "identified",
    });
    const status = await page("/status");
    expect(status).toContain("Slow answers &lt;in&gt; Europe");
    expect(status.indexOf("requests go elsewhere")).toBeLessThan(status.indexOf("looking into it"));
    const feed = await page("/status.atom");
    expect(feed).toContain("requests go elsewhere");
    expect(/<updated>([^<]*)</.exec(feed)?.[1]).toBe(textAt(told, "updates.0.at"));
    const resolved = await scene.owner.json("PATCH", `/admin/incidents/${id}`, {
      text: "Back to normal.",
      state: "resolved",
    });
    expect([at(resolved, "state"), listAt(resolved, "updates").length]).toEqual(["resolved", 3]);
    const history: unknown = await (
      await fetch(`${scene.gateway().baseUrl}/health/history`)
    ).json();
    expect(at(history, "notices.0")).toEqual(resolved);
    await scene.owner.json("DELETE", `/admin/incidents/${id}`);
    expect(await page("/status")).not.toContain("Slow answers");
    expect(listAt(await scene.owner.json("GET", "/admin/incidents"), "data")).toEqual([]);
  });

  test("are refused by the field, and are for operators alone", async () => {
    const refused = await scene.owner.api("POST", "/admin/incidents", { title: "x", text: "" });
    expect(await errorOf(refused)).toMatchObject({ status: 400, param: "text" });
    const { browser } = await scene.person("visitor");
    const other = await browser.api("POST", "/admin/incidents", { title: "x", text: "y" });
    expect(other.status).toBe(403);
  });
});
