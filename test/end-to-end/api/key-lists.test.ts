import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startPeopled, type PeopledGateway } from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

describe.each(allEngines)("lists of keys on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let parent: unknown;
  beforeAll(async () => {
    people = await startPeopled(await freshUrl());
    for (const name of ["Beta", "alpha", "Gamma"])
      await people.owner.json("POST", "/keys", { name });
    parent = at(await people.owner.json("POST", "/keys", { name: "Parent", limit: 5 }), "data");
    await people.owner.json("POST", `/keys/${textAt(parent, "hash")}/children`, {
      name: "Child",
      limit: 1,
    });
  }, 240_000);
  afterAll(() => people.stop());

  const names = async (query: string): Promise<unknown[]> =>
    listAt(await people.owner.json("GET", `/keys?${query}`), "data").map((key) => at(key, "name"));

  test("a session can create a child of a key within the key's limits", async () => {
    const path = `/keys/${textAt(parent, "hash")}/children`;
    const refused = await errorOf(
      await people.owner.api("POST", path, { name: "Child", limit: 6 }),
    );
    expect([refused.status, refused.param]).toEqual([400, "limit"]);
    const [child] = listAt(
      await people.owner.json("GET", `/keys?parent=${textAt(parent, "id")}`),
      "data",
    );
    expect(child).toMatchObject({ name: "Child", limit: 1, parent_key_id: textAt(parent, "id") });
    const grandchild = await people.owner.api("POST", `/keys/${textAt(child, "hash")}/children`, {
      name: "Grandchild",
    });
    expect(grandchild.status).toBe(403);
    expect((await people.owner.api("POST", "/keys/0000/children", { name: "Child" })).status).toBe(
      404,
    );
  });

  test("can be filtered by text, creator and parent, and sorted", async () => {
    // Longer than the three random characters of a key that its label shows.
    expect(await names("search=ALPH")).toEqual(["alpha"]);
    expect(await names("search=%25")).toEqual([]);
    expect(await names("sort=name&creator=usr_none")).toEqual([]);
    const {
      user: { id },
    } = (await people.owner.json("GET", "/session")) as { user: { id: string } };
    expect(await names(`sort=name&creator=${id}`)).toEqual([
      "alpha",
      "Beta",
      "Child",
      "Gamma",
      "Parent",
    ]);
    expect(await names(`sort=name&parent=none&creator=${id}`)).toEqual([
      "alpha",
      "Beta",
      "Gamma",
      "Parent",
    ]);
  });

  test("are paged when a limit is given, and complete otherwise", async () => {
    const all = await names("");
    const pages: unknown[] = [];
    for (let query = "limit=2"; query !== ""; ) {
      const seen = await people.owner.json("GET", `/keys?${query}`);
      pages.push(...listAt(seen, "data").map((key) => at(key, "name")));
      query = at(seen, "has_more") === true ? `limit=2&cursor=${textAt(seen, "next_cursor")}` : "";
    }
    expect(pages).toEqual(all);
    expect(Object.keys(Object(await people.owner.json("GET", "/keys")))).toEqual([
      "object",
      "data",
    ]);
  });

  test.each(["limit=0", "limit=x", "sort=colour", "cursor=none", "colour=red"])(
    "%s returns 400 that names the parameter",
    async (query) => {
      const refused = await errorOf(await people.owner.api("GET", `/keys?${query}`));
      expect([refused.status, refused.param]).toEqual([400, query.split("=")[0] ?? ""]);
    },
  );
});
