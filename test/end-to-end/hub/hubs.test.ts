import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { strFromU8, unzipSync } from "fflate";
import { at, listAt, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import {
  allEngines,
  startTwoWorkspaces,
  type Ask,
  type TwoWorkspaces,
} from "../api/two-workspaces.ts";
import { approve, expectHidden, idsOf, json, skillDocument } from "./hub-scene.ts";

const unzipped = async (answer: Response): Promise<Record<string, string>> => {
  expect(answer.headers.get("content-type")).toBe("application/zip");
  const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
  return Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, strFromU8(bytes)]));
};

describe.each(allEngines)("hubs and skills on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
  }, 240_000);
  afterAll(() => workspaces.stop());

  let count = 0;
  const makeHub = async (
    fields: Record<string, unknown> = {},
    ask: Ask = workspaces.own,
  ): Promise<string> =>
    textAt(await json(ask("POST", "/hubs", { name: `Hub ${(count += 1)}`, ...fields })), "slug");
  const add = (slug: string, fields: unknown): Promise<unknown> =>
    json(workspaces.own("POST", `/hubs/${slug}/items`, fields));

  const expectGone = async (method: string, path: string): Promise<void> =>
    expect((await workspaces.own(method, path, method === "PATCH" ? {} : undefined)).status).toBe(
      404,
    );

  test("a hub's slug comes from its name, unless it is taken", async () => {
    const hub = await json(
      workspaces.own("POST", "/hubs", { name: "Caf\u00e9 & Tools!", description: "All of it." }),
    );
    expect(hub).toEqual({
      id: expect.stringMatching(/^hub_[0-9a-f]{32}$/),
      object: "hub",
      slug: "cafe-tools",
      name: "Caf\u00e9 & Tools!",
      description: "All of it.",
      visibility: "workspace",
      item_count: 0,
      owned: true,
      created_by: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(await makeHub({ name: "Cafe Tools" })).toBe("cafe-tools-2");
    expect(await makeHub({ name: "\u6f22\u5b57" })).toBe("hub");
    const taken = await workspaces.own("POST", "/hubs", { name: "x", slug: "cafe-tools" });
    expect(await errorOf(taken)).toMatchObject({
      status: 409,
      code: "duplicate_slug",
      param: "slug",
    });
    expect(await json(workspaces.own("GET", "/hubs/cafe-tools"))).toEqual({
      ...Object(hub),
      items: [],
    });
    expect(await idsOf(workspaces.own, "/hubs")).toContain(at(hub, "id"));
  });

  test("a hub holds documents, skills, prompts and plugins, named by their front matter", async () => {
    const slug = await makeHub();
    const document = await add(slug, {
      body: "---\ntype: concept\ntitle: Billing\ndescription: How it is paid.\n---\nText.",
    });
    expect(document).toMatchObject({
      id: expect.stringMatching(/^kbd_/),
      object: "knowledge_document",
      name: "Billing",
      slug: "billing",
      hub: slug,
      description: "How it is paid.",
      visibility: "workspace",
      version: 1,
    });
    expect(await add(slug, { body: "# Heading #\ntext" })).toMatchObject({
      name: "Heading",
      slug: "heading",
    });
    expect(await add(slug, { body: "nothing" })).toMatchObject({ name: "Untitled" });
    const skill = await add(slug, { kind: "skill", body: skillDocument("deploy"), tags: ["ops"] });
    expect(skill).toMatchObject({
      object: "skill",
      name: "deploy",
      slug: "deploy",
      description: "How deploy is done.",
      tags: ["ops"],
    });
    expect(await add(slug, { kind: "prompt", body: "Say hi.", name: "Hi" })).toMatchObject({
      object: "prompt",
      title: "Hi",
      status: null,
    });
    expect(await add(slug, { kind: "plugin", body: "{}", name: "P", slug: "p" })).toMatchObject({
      object: "plugin",
      slug: "p",
    });
    expect(await idsOf(workspaces.own, `/hubs/${slug}/items?kind=skill`)).toEqual([
      at(skill, "id"),
    ]);
    expect(await json(workspaces.own("GET", `/hubs/${slug}/items/deploy`))).toEqual(skill);
    expect(await json(workspaces.own("GET", `/skills/${textAt(skill, "id")}`))).toEqual(skill);
    const shown = await json(workspaces.own("GET", `/hubs/${slug}`));
    expect(shown).toMatchObject({ item_count: 6 });
    expect(listAt(shown, "items")).toHaveLength(6);
    expect(listAt(shown, "items")).toContainEqual(skill);
    expect(
      (await workspaces.own("POST", `/hubs/${slug}/items`, { body: "x", slug: "deploy" })).status,
    ).toBe(409);
    expect(await json(workspaces.own("DELETE", `/hubs/${slug}/items/deploy`))).toEqual({
      deleted: true,
      id: at(skill, "id"),
    });
    await expectHidden(workspaces.own, `/skills/${textAt(skill, "id")}`);
  });

  test("an item is changed in versions, by slug or id, and keeps omitted fields", async () => {
    const slug = await makeHub();
    const path = `/hubs/${slug}/items/billing`;
    const item = await add(slug, {
      body: "---\ntitle: Billing\ndescription: How it is paid.\n---\nBy card.",
      tags: ["money"],
    });
    const id = textAt(item, "id");
    const changed = await json(workspaces.own("PATCH", path, { body: "# Paying\nBy invoice." }));
    expect(changed).toMatchObject({
      id,
      name: "Billing",
      slug: "billing",
      tags: ["money"],
      description: null,
      version: 2,
    });
    expect(await json(workspaces.own("PATCH", `/hubs/${slug}/items/${id}`, {}))).toMatchObject({
      version: 2,
    });
    expect(
      await json(workspaces.own("PATCH", path, { name: "Paying", slug: "paying", tags: [] })),
    ).toMatchObject({ name: "Paying", slug: "paying", tags: [], version: 3 });
    await expectGone("PATCH", path);
    await expectGone("GET", `${path}/versions`);
    const versions = await json(workspaces.own("GET", `/hubs/${slug}/items/paying/versions`));
    expect(
      listAt(versions, "data").map((each) => [at(each, "version"), at(each, "title")]),
    ).toEqual([
      [3, "Paying"],
      [2, "Billing"],
      [1, "Billing"],
    ]);
    expect(textAt(versions, "data.2.body")).toContain("By card.");
    await add(slug, { body: "x", slug: "taken" });
    const taken = await workspaces.own("PATCH", `/hubs/${slug}/items/paying`, { slug: "taken" });
    expect(await errorOf(taken)).toMatchObject({ status: 409, code: "duplicate_slug" });
    const unknown = await workspaces.own("PATCH", `/hubs/${slug}/items/paying`, { kind: "skill" });
    expect(await errorOf(unknown)).toMatchObject({ status: 400 });
  });

  test("a changed prompt of a public hub waits for review and keeps its own description", async () => {
    const slug = await makeHub({ visibility: "public" });
    const id = textAt(await add(slug, { kind: "prompt", name: "Hi", body: "Say hi." }), "id");
    await json(workspaces.own("PATCH", `/prompts/${id}`, { description: "Greets." }));
    await approve(workspaces, id);
    const path = `/hubs/${slug}/items/${id}`;
    expect(await json(workspaces.own("PATCH", path, { body: "Say hello." }))).toMatchObject({
      title: "Hi",
      description: "Greets.",
      status: "pending_review",
      version: 3,
      published_version: 2,
    });
    expect(await json(workspaces.stranger("GET", path))).toMatchObject({
      body: "Say hi.",
      version: 2,
    });
    const seen = await json(workspaces.stranger("GET", `${path}/versions`));
    expect(listAt(seen, "data").map((each) => at(each, "version"))).toEqual([2]);
    const refused = await workspaces.stranger("PATCH", path, { body: "Mine." });
    expect(await errorOf(refused)).toMatchObject({ status: 403, code: "forbidden" });
  });

  test("a hub includes item bodies up to a total size", async () => {
    const slug = await makeHub();
    for (let index = 0; index < 4; index += 1)
      await add(slug, { body: `${index}${"x".repeat(90_000)}` });
    const bodies = listAt(await json(workspaces.own("GET", `/hubs/${slug}`)), "items").map((item) =>
      at(item, "body"),
    );
    expect(bodies.map((body) => String(body).slice(0, 1))).toEqual(["3", "2", "n", "n"]);
    expect(bodies[3]).toBeNull();
  });

  test("a workspace hub is hidden from others, and a public one is visible without its people", async () => {
    const slug = await makeHub();
    const item = textAt(await add(slug, { kind: "skill", body: skillDocument("shared") }), "id");
    for (const path of [
      `/hubs/${slug}`,
      `/hubs/${slug}/items`,
      `/hubs/${slug}/items/${item}`,
      `/hubs/${slug}/export`,
    ]) {
      expect([path, (await workspaces.stranger("GET", path)).status]).toEqual([path, 404]);
    }
    await expectHidden(workspaces.stranger, `/skills/${item}`);
    await json(workspaces.own("PATCH", `/hubs/${slug}`, { visibility: "public" }));
    expect(await json(workspaces.stranger("GET", `/hubs/${slug}`))).toMatchObject({
      owned: false,
      created_by: null,
      item_count: 1,
      items: [{ id: item, created_by: null }],
    });
    expect(await idsOf(workspaces.stranger, "/hubs")).toEqual([]);
    for (const [method, path, body] of [
      ["PATCH", `/hubs/${slug}`, { name: "theirs" }],
      ["DELETE", `/hubs/${slug}`, undefined],
      ["POST", `/hubs/${slug}/items`, { body: "x" }],
      ["DELETE", `/hubs/${slug}/items/${item}`, undefined],
      ["PATCH", `/skills/${item}`, { tags: [] }],
      ["DELETE", `/skills/${item}`, undefined],
      ["POST", "/skills", { body: skillDocument("intruder"), hub: slug }],
    ] as const) {
      expect([method, path, (await workspaces.stranger(method, path, body)).status]).toEqual([
        method,
        path,
        403,
      ]);
    }
    await json(workspaces.own("PATCH", `/hubs/${slug}`, { visibility: "workspace" }));
    expect((await workspaces.stranger("GET", `/hubs/${slug}`)).status).toBe(404);
    await expectHidden(workspaces.stranger, `/skills/${item}`);
  });

  test("prompts of a public hub wait for approval like others", async () => {
    const slug = await makeHub();
    const prompt = textAt(await add(slug, { kind: "prompt", body: "Say hi.", name: "Hi" }), "id");
    await json(workspaces.own("PATCH", `/hubs/${slug}`, { visibility: "public" }));
    const later = await add(slug, { kind: "prompt", body: "Say ho.", name: "Ho" });
    expect(later).toMatchObject({ visibility: "public", status: "pending_review" });
    expect(await idsOf(workspaces.stranger, `/hubs/${slug}/items`)).toEqual([]);
    await approve(workspaces, prompt);
    expect(await idsOf(workspaces.stranger, `/hubs/${slug}/items`)).toEqual([prompt]);
    const apart = await workspaces.own("PATCH", `/prompts/${prompt}`, { visibility: "private" });
    expect(await errorOf(apart)).toMatchObject({ param: "visibility" });
  });

  test("own hubs come before public ones of the same slug, and public slugs are unique", async () => {
    const slug = await makeHub({ slug: "same", visibility: "public" });
    expect(
      (await workspaces.stranger("POST", "/hubs", { name: "x", slug, visibility: "public" }))
        .status,
    ).toBe(409);
    const open = textAt(await json(workspaces.stranger("GET", `/hubs/${slug}`)), "id");
    await makeHub({ slug, name: "Theirs" }, workspaces.stranger);
    expect(await json(workspaces.stranger("GET", `/hubs/${slug}`))).toMatchObject({
      name: "Theirs",
      owned: true,
    });
    expect(await json(workspaces.stranger("GET", `/hubs/${open}`))).toMatchObject({
      id: open,
      owned: false,
    });
    expect(
      (await workspaces.stranger("PATCH", `/hubs/${slug}`, { visibility: "public" })).status,
    ).toBe(409);
  });

  test("deleting a hub deletes its items", async () => {
    const slug = await makeHub();
    const item = textAt(await add(slug, { kind: "skill", body: skillDocument("gone") }), "id");
    expect(await json(workspaces.own("DELETE", `/hubs/${slug}`))).toMatchObject({
      deleted: true,
      slug,
    });
    expect((await workspaces.own("GET", `/hubs/${slug}`)).status).toBe(404);
    await expectHidden(workspaces.own, `/skills/${item}`);
    expect(await makeHub({ slug })).toBe(slug);
  });

  test.each([
    "no front matter",
    "---\nname: Upper\ndescription: d\n---\n",
    "---\nname: a--b\ndescription: d\n---\n",
    "---\nname: a\n---\n",
    "---\nname: a\ndescription: ''\n---\n",
    `---\nname: a\ndescription: ${"d".repeat(1_025)}\n---\n`,
    "---\nname: [a\n---\n",
    `---\nname: ${"a".repeat(65)}\ndescription: d\n---\n`,
    "---\na: &a [x]\nname: *a\ndescription: d\n---\n",
    "---\n- name\n---\n",
  ])("%j is not a valid skill", async (body) => {
    expect(await errorOf(await workspaces.own("POST", "/skills", { body }))).toMatchObject({
      status: 400,
      param: "body",
    });
  });

  test("control characters in front matter are removed from the record's fields", async () => {
    const body = '---\nname: odd\ndescription: "a\\u0000b\\x1b[2J\\u202Ec"\n---\n';
    expect(await json(workspaces.own("POST", "/skills", { body }))).toMatchObject({
      description: "a b [2J c",
      body,
    });
  });

  test("a skill's new document creates a version, and its export is a skill folder", async () => {
    const skill = await json(
      workspaces.own("POST", "/skills", {
        body: skillDocument("lint"),
        slug: "lint-it",
        visibility: "private",
      }),
    );
    const id = textAt(skill, "id");
    await expectHidden(workspaces.stranger, `/skills/${id}`);
    const body = skillDocument("lint-more", "Twice.");
    const changed = await json(workspaces.own("PATCH", `/skills/${id}`, { body }));
    expect(changed).toMatchObject({ version: 2, name: "lint-more", slug: "lint-it" });
    expect(await unzipped(await workspaces.own("GET", `/skills/${id}/export`))).toEqual({
      "lint-it/SKILL.md": body,
    });
    const fork = await json(workspaces.own("POST", `/skills/${id}/fork`));
    expect(fork).toMatchObject({ visibility: "private", forked_from: id, slug: "lint-more", body });
    expect(await json(workspaces.own("POST", `/skills/${id}/star`))).toMatchObject({
      stars: 1,
      forks: 1,
    });
  });

  test("a hub's export has a folder for each kind", async () => {
    const slug = await makeHub();
    await add(slug, { kind: "skill", body: skillDocument("one") });
    await add(slug, { body: "# Two" });
    await add(slug, { kind: "prompt", body: "three", name: "../../Three" });
    expect(await unzipped(await workspaces.own("GET", `/hubs/${slug}/export`))).toEqual({
      [`${slug}/skills/one/SKILL.md`]: skillDocument("one"),
      [`${slug}/knowledge/${"two"}.md`]: "# Two",
      [`${slug}/prompts/${"three"}.md`]: "three",
    });
  });
});
