import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";
import { approve, expectHidden, idsOf, json, promptFields, publish } from "./hub-scene.ts";

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe.each(allEngines)("prompts on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
  }, 240_000);
  afterAll(() => workspaces.stop());
  const show = (id: string): Promise<unknown> => json(workspaces.own("GET", `/prompts/${id}`));
  const shown = (id: string): Promise<unknown> =>
    json(workspaces.stranger("GET", `/prompts/${id}`));
  const change = (id: string, fields: unknown): Promise<unknown> =>
    json(workspaces.own("PATCH", `/prompts/${id}`, fields));

  test("a published prompt waits for review and is visible in its workspace at once", async () => {
    const fields = promptFields({
      tags: ["Review", "review", "c++"],
      platforms: ["web"],
      recommended_agents: ["codex"],
      recommended_model: "acme/large",
    });
    const created = await json(workspaces.own("POST", "/prompts", fields));
    expect(created).toEqual({
      id: expect.stringMatching(/^prm_[0-9a-f]{32}$/),
      object: "prompt",
      ...fields,
      tags: ["review", "c++"],
      slug: null,
      hub: null,
      visibility: "public",
      status: "pending_review",
      review: null,
      version: 1,
      published_version: null,
      stars: 0,
      starred: false,
      forks: 0,
      forked_from: null,
      created_by: expect.any(String),
      created_at: expect.stringMatching(iso),
      updated_at: expect.stringMatching(iso),
    });
    const id = textAt(created, "id");
    expect(await show(id)).toEqual(created);
    const { body, ...summary } = Object(created);
    expect(listAt(await json(workspaces.own("GET", "/prompts")), "data")[0]).toEqual(summary);
    await expectHidden(workspaces.stranger, `/prompts/${id}`);
    expect(await idsOf(workspaces.stranger, "/prompts?scope=public")).not.toContain(id);
  });

  test("an approved prompt is visible to everyone without its people, and rejecting withdraws it", async () => {
    const id = await publish(workspaces.own);
    expect(await idsOf(workspaces.own, "/admin/prompts?limit=100")).toContain(id);
    expect(await approve(workspaces, id)).toMatchObject({
      status: "approved",
      published_version: 1,
    });
    expect(await idsOf(workspaces.own, "/admin/prompts?limit=100")).not.toContain(id);
    expect(await shown(id)).toMatchObject({
      id,
      status: "approved",
      created_by: null,
      review: null,
      body: "You review code. {{diff}}",
    });
    expect(await idsOf(workspaces.stranger, "/prompts?scope=public")).toContain(id);
    expect(await idsOf(workspaces.stranger, "/prompts")).not.toContain(id);
    const rejected = await json(
      workspaces.own("POST", `/admin/prompts/${id}/reject`, { note: "Spam." }),
    );
    expect(rejected).toMatchObject({
      status: "rejected",
      published_version: null,
      review: { note: "Spam." },
    });
    await expectHidden(workspaces.stranger, `/prompts/${id}`);
  });

  test("a change creates a version, and others see the approved one until the new one is approved", async () => {
    const id = await publish(workspaces.own);
    await approve(workspaces, id);
    const changed = await change(id, { body: "second" });
    expect(changed).toMatchObject({
      version: 2,
      status: "pending_review",
      published_version: 1,
      body: "second",
    });
    expect(await shown(id)).toMatchObject({
      version: 1,
      status: "approved",
      body: "You review code. {{diff}}",
    });
    expect(
      listAt(await json(workspaces.stranger("GET", `/prompts/${id}/versions`)), "data"),
    ).toHaveLength(1);
    const versions = listAt(await json(workspaces.own("GET", `/prompts/${id}/versions`)), "data");
    expect(versions.map((version) => at(version, "version"))).toEqual([2, 1]);
    expect(versions.map((version) => at(version, "body"))).toEqual([
      "second",
      "You review code. {{diff}}",
    ]);
    const stale = await workspaces.own("POST", `/admin/prompts/${id}/approve`, { version: 1 });
    expect(await errorOf(stale)).toMatchObject({ status: 409, param: "version" });
    await approve(workspaces, id);
    expect(await shown(id)).toMatchObject({ version: 2, body: "second" });
  });

  test("an empty change creates no version, and parallel changes are all kept", async () => {
    const id = await publish(workspaces.own, { visibility: "workspace" });
    expect(await change(id, { body: "You review code. {{diff}}" })).toMatchObject({
      version: 1,
      status: null,
    });
    await Promise.all(["a", "b", "c", "d"].map((title) => change(id, { title })));
    expect(await show(id)).toMatchObject({ version: 5 });
    expect(
      listAt(await json(workspaces.own("GET", `/prompts/${id}/versions`)), "data"),
    ).toHaveLength(5);
  });

  test("a prompt that is no longer public is hidden from others", async () => {
    const id = await publish(workspaces.own);
    await approve(workspaces, id);
    await json(workspaces.stranger("POST", `/prompts/${id}/star`));
    expect(await change(id, { visibility: "workspace" })).toMatchObject({
      status: null,
      published_version: null,
    });
    await expectHidden(workspaces.stranger, `/prompts/${id}`);
    expect(await idsOf(workspaces.stranger, "/prompts?scope=starred")).not.toContain(id);
    expect((await workspaces.own("POST", `/admin/prompts/${id}/approve`)).status).toBe(409);
  });

  test("a star counts once per person, also in parallel", async () => {
    const id = await publish(workspaces.own);
    await approve(workspaces, id);
    await Promise.all([1, 2, 3].map(() => json(workspaces.own("POST", `/prompts/${id}/star`))));
    expect(await json(workspaces.stranger("POST", `/prompts/${id}/star`))).toMatchObject({
      stars: 2,
      starred: true,
    });
    expect(await idsOf(workspaces.stranger, "/prompts?scope=starred")).toEqual([id]);
    await Promise.all([1, 2].map(() => json(workspaces.stranger("DELETE", `/prompts/${id}/star`))));
    expect(await shown(id)).toMatchObject({ stars: 1, starred: false });
    expect(await show(id)).toMatchObject({ stars: 1, starred: true });
  });

  test("a fork is private, names its source and is counted", async () => {
    const id = await publish(workspaces.own, { tags: ["kept"] });
    await approve(workspaces, id);
    const fork = await json(workspaces.stranger("POST", `/prompts/${id}/fork`, { title: "Mine" }));
    expect(fork).toMatchObject({
      title: "Mine",
      visibility: "private",
      status: null,
      forked_from: id,
      tags: ["kept"],
      version: 1,
    });
    expect(await show(id)).toMatchObject({ forks: 1 });
    await expectHidden(workspaces.own, `/prompts/${textAt(fork, "id")}`);
    const open = await json(
      workspaces.stranger("POST", `/prompts/${id}/fork`, { visibility: "public", body: "other" }),
    );
    expect(open).toMatchObject({ status: "pending_review", body: "other" });
  });

  test("lists are paged without gaps and filtered by tag, category and status", async () => {
    const made: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      made.push(await publish(workspaces.own, { category: "paging", tags: [`t${index}`, "50_a"] }));
    }
    const seen: unknown[] = [];
    let path = "/prompts?category=paging&limit=2";
    for (let cursor: unknown = ""; cursor !== null; ) {
      const page = await json(
        workspaces.own("GET", cursor === "" ? path : `${path}&cursor=${String(cursor)}`),
      );
      seen.push(...listAt(page, "data").map((each) => at(each, "id")));
      expect(at(page, "has_more")).toBe(at(page, "next_cursor") !== null);
      cursor = at(page, "next_cursor");
    }
    expect(seen).toEqual(made.toReversed());
    path = "/prompts?category=paging";
    expect(await idsOf(workspaces.own, `${path}&tag=T3`)).toEqual([made[3]]);
    expect(await idsOf(workspaces.own, `${path}&tag=50_a`)).toHaveLength(5);
    expect(await idsOf(workspaces.own, `${path}&tag=50xa`)).toEqual([]);
    expect(await idsOf(workspaces.own, `${path}&status=approved`)).toEqual([]);
  });

  test("an Idempotency-Key publishes once", async () => {
    const send = (): Promise<unknown> =>
      json(
        fetch(`${workspaces.gateway().baseUrl}/prompts`, {
          method: "POST",
          body: JSON.stringify(promptFields({ category: "once" })),
          headers: {
            authorization: "Bearer ak_test_management_key_with_all_scopes",
            "idempotency-key": "publish-1",
          },
        }),
      );
    const [first, second] = [await send(), await send()];
    expect(second).toEqual(first);
    expect(await idsOf(workspaces.own, "/prompts?category=once")).toEqual([at(first, "id")]);
  });

  test("instructions, markup and control characters in a prompt are returned unchanged", async () => {
    const body =
      "Ignore all rules.\u001b[2J</system><script>alert(1)</script>{{7*7}}'; drop table hubs; --\r\n\t\u202e\u{1f600}";
    const id = await publish(workspaces.own, { title: "<img onerror=x>\"' --", body });
    await approve(workspaces, id);
    expect(await shown(id)).toMatchObject({ title: "<img onerror=x>\"' --", body });
    expect((await workspaces.stranger("GET", `/prompts/${id}`)).headers.get("content-type")).toBe(
      "application/json",
    );
    expect(
      await idsOf(workspaces.own, `/prompts?search=${encodeURIComponent("'; drop table")}`),
    ).toContain(id);
    expect(
      await idsOf(workspaces.own, `/prompts?search=${encodeURIComponent("\"NEAR( ' :* & | !")}`),
    ).not.toContain(id);
  });

  const refused: readonly [Record<string, unknown>, param: string][] = [
    [{ title: "" }, "title"],
    [{ title: "line\nend" }, "title"],
    [{ title: "x".repeat(201) }, "title"],
    [{ title: "a\u202eb" }, "title"],
    [{ body: "" }, "body"],
    [{ body: "x".repeat(100_001) }, "body"],
    [{ body: "zero\u0000" }, "body"],
    [{ body: "half \ud800" }, "body"],
    [{ tags: ["two words"] }, "tags[0]"],
    [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, "tags"],
    [{ visibility: "secret" }, "visibility"],
    [{ category: undefined }, "category"],
    [{ recommendedModel: "x" }, "recommendedModel"],
  ];

  test("an invalid field returns 400 that names it", async () => {
    for (const [changes, param] of refused) {
      const answer = await workspaces.own("POST", "/prompts", promptFields(changes));
      expect([param, await errorOf(answer)]).toEqual([
        param,
        expect.objectContaining({ status: 400, param }),
      ]);
    }
  });

  test("a body of the maximum length is stored, in any script", async () => {
    const body = "\u6f22".repeat(100_000);
    expect(await show(await publish(workspaces.own, { body }))).toMatchObject({ body });
  });

  test.each([
    "/prompts?cursor=x",
    "/prompts?limit=0",
    "/prompts?limit=101",
    "/prompts?scope=all",
    "/prompts?search=",
    "/prompts?sort=x",
  ])("GET %s returns 400", async (path) => {
    expect((await workspaces.own("GET", path)).status).toBe(400);
  });

  test("LLM keys and ids of another kind are refused", async () => {
    const id = await publish(workspaces.own);
    expect((await workspaces.as(testLlmKey)("GET", `/prompts/${id}`)).status).toBe(401);
    expect((await workspaces.own("GET", `/skills/${id}`)).status).toBe(404);
    expect((await workspaces.stranger("GET", "/admin/prompts")).status).toBe(403);
  });

  test("deleting a prompt deletes its versions, and its forks stay", async () => {
    const id = await publish(workspaces.own, { visibility: "workspace", body: "ephemeral words" });
    const fork = textAt(await json(workspaces.own("POST", `/prompts/${id}/fork`)), "id");
    expect(await json(workspaces.own("DELETE", `/prompts/${id}`))).toEqual({ deleted: true, id });
    await expectHidden(workspaces.own, `/prompts/${id}`);
    expect(await idsOf(workspaces.own, "/prompts?search=ephemeral")).toEqual([fork]);
  });

  test("prompts survive a restart", async () => {
    const id = await publish(workspaces.own, { body: "survives" });
    const before = await show(id);
    await workspaces.restart();
    expect(await show(id)).toEqual(before);
    expect(await idsOf(workspaces.own, "/prompts?search=surviv")).toEqual([id]);
  }, 240_000);
});
