import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, testLlmKey } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

describe.each(engines)("preset versions on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const json = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    (await workspaces.own(method, path, body)).json();
  const versions = async (slug: string): Promise<unknown[]> =>
    listAt(await json("GET", `/presets/${slug}/versions`), "data");

  test("each change creates a version with its author and content", async () => {
    await json("POST", "/presets", {
      slug: "brief",
      name: "Brief",
      config: { model: "acme/large", temperature: 1 },
    });
    const changed = await json("PATCH", "/presets/brief", {
      name: "Briefer",
      config: { temperature: 0.2, system: "Be brief." },
    });
    expect(changed).toMatchObject({ version: 2 });
    // Nothing is changed by it, so nothing is a version of it.
    expect(await json("PATCH", "/presets/brief", {})).toMatchObject({ version: 2 });
    const author = expect.stringMatching(/^mgk_/);
    expect(await versions("brief")).toEqual([
      {
        object: "preset_version",
        version: 2,
        name: "Briefer",
        description: null,
        author,
        created_at: textAt(changed, "updated_at"),
        config: { model: "acme/large", temperature: 0.2, system: "Be brief." },
      },
      {
        object: "preset_version",
        version: 1,
        name: "Brief",
        description: null,
        author,
        created_at: textAt(changed, "created_at"),
        config: { model: "acme/large", temperature: 1 },
      },
    ]);
  });

  test("restoring an older version creates a new one that applies to the next request", async () => {
    await json("POST", "/presets", {
      slug: "back",
      name: "Back",
      config: { model: "acme/large", temperature: 1 },
    });
    await json("PATCH", "/presets/back", {
      description: "other",
      config: { temperature: null, top_p: 0.5 },
    });
    const restored = await json("POST", "/presets/back/versions/1/restore");
    expect(restored).toMatchObject({
      version: 3,
      description: null,
      config: { model: "acme/large", temperature: 1 },
    });
    expect(at(restored, "config.top_p")).toBeUndefined();
    const asked = await workspaces.as(testLlmKey)("POST", "/chat/completions", {
      model: "@preset/back",
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(asked.status).toBe(200);
    await asked.text();
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? "{}")).toMatchObject({ temperature: 1 });
    expect(textAt(await json("GET", "/presets/back"), "last_used_at")).toMatch(/^\d{4}-/);
    expect(await json("GET", "/presets/brief")).toMatchObject({ last_used_at: null });
    await workspaces.restart();
    expect(await json("GET", "/presets/back")).toMatchObject({
      version: 3,
      last_used_at: expect.any(String),
    });
  });

  test("parallel changes create consecutive versions, and versions are deleted with their preset", async () => {
    await json("POST", "/presets", { slug: "busy", name: "Busy", config: {} });
    await Promise.all(
      [1, 2, 3, 4].map((count) =>
        workspaces.own("PATCH", "/presets/busy", { name: `Busy ${count}` }),
      ),
    );
    expect((await versions("busy")).map((version) => at(version, "version"))).toEqual([
      5, 4, 3, 2, 1,
    ]);
    await json("DELETE", "/presets/busy");
    expect((await workspaces.own("GET", "/presets/busy/versions")).status).toBe(404);
    await json("POST", "/presets", { slug: "busy", name: "Again", config: {} });
    expect(await versions("busy")).toHaveLength(1);
  });

  test("other workspaces cannot read or restore versions, and an unknown version returns 404", async () => {
    expect((await workspaces.stranger("GET", "/presets/brief/versions")).status).toBe(404);
    expect((await workspaces.stranger("POST", "/presets/brief/versions/1/restore")).status).toBe(
      404,
    );
    for (const version of ["9", "0", "x", "1.5"]) {
      const refused = await errorOf(
        await workspaces.own("POST", `/presets/brief/versions/${version}/restore`),
      );
      expect([refused.status, refused.code]).toEqual([404, "not_found"]);
    }
  });
});
