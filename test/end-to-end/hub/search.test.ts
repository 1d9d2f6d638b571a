import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { textAt } from "../api/at.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";
import { approve, idsOf, json, publish } from "./hub-scene.ts";

/** What is looked for, and which of the bodies have it; the same on every engine. */
const bodies = {
  plain: "The quick brown fox jumps over lazy dogs.",
  accents: "Un caf\u00e9 na\u00efve \u00e0 Z\u00fcrich, STRASSE \u0130stanbul",
  code: "const total_price = cart.items.map(x => x.price * 1.19); // e-mail: a.b@example.com",
  chinese: "\u6211\u4eec\u5728\u4e1c\u4eac\u5ba1\u67e5\u4ee3\u7801",
  cyrillic: "Проверь код внимательно",
  emoji: "Ship it \u{1f680}\u{1f680} today",
} as const;
type Name = keyof typeof bodies;

const searches: readonly [search: string, found: readonly Name[]][] = [
  ["fox", ["plain"]],
  ["FOX quick", ["plain"]],
  ["fo", ["plain"]],
  ["ox", []],
  ["quick cat", []],
  ["dogs.", ["plain"]],
  ["cafe", ["accents"]],
  ["CAF\u00c9", ["accents"]],
  ["zurich", ["accents"]],
  ["istanbul", ["accents"]],
  ["total", ["code"]],
  ["price", ["code"]],
  ["total_price", ["code"]],
  ["1.19", ["code"]],
  ["e-mail", ["code"]],
  ["example.com", ["code"]],
  ["a.b@example.com", ["code"]],
  ["\u4e1c\u4eac", ["chinese"]],
  ["\u4ee3\u7801", ["chinese"]],
  ["\u5317\u4eac", []],
  ["\u043a\u043e\u0434", ["cyrillic"]],
  ["\u041a\u041e\u0414", ["cyrillic"]],
  ["today", ["emoji"]],
  ["\u{1f680}", []],
  ["fox OR cat", []],
  ["fox*", ["plain"]],
  ['"brown fox"', ["plain"]],
  ["fox & !dogs", ["plain"]],
  ["words:fox", []],
  ["'", []],
  ["\\", []],
  ["NEAR(quick fox)", []],
  ["the", ["plain"]],
  ["%", []],
  ["it to", ["emoji", "code"]],
];

describe.each(allEngines)("search on %s", (_, freshUrl) => {
  let workspaces: TwoWorkspaces;
  const names = new Map<unknown, Name>();
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl);
    for (const [name, body] of Object.entries(bodies)) {
      names.set(
        await publish(workspaces.own, { title: "T", description: "D", category: "C", body }),
        name as Name,
      );
    }
  }, 240_000);
  afterAll(() => workspaces.stop());
  const find = (path: string, search: string): Promise<unknown[]> =>
    idsOf(workspaces.own, `${path}search=${encodeURIComponent(search)}`);

  test.each(searches)("%j finds exactly the matching prompts", async (search, found) => {
    expect((await find("/prompts?", search)).map((id) => names.get(id))).toEqual([...found]);
  });

  test("matches title, description, category, tags and body", async () => {
    const id = await publish(workspaces.own, {
      title: "Zebra",
      description: "Yak",
      category: "Xerus",
      tags: ["wombat"],
      body: "Vole",
    });
    for (const word of ["zebra", "yak", "xerus", "wombat", "vole"])
      expect([word, await find("/prompts?", word)]).toEqual([word, [id]]);
    await json(workspaces.own("PATCH", `/prompts/${id}`, { title: "Ant" }));
    expect(await find("/prompts?", "zebra")).toEqual([]);
    expect(await find("/prompts?", "ant")).toEqual([id]);
  });

  test("others find the approved version and not the pending one", async () => {
    const id = await publish(workspaces.own, { body: "approvedword" });
    await approve(workspaces, id);
    await json(workspaces.own("PATCH", `/prompts/${id}`, { body: "pendingword" }));
    expect(await idsOf(workspaces.stranger, "/prompts?scope=public&search=approvedword")).toEqual([
      id,
    ]);
    expect(await idsOf(workspaces.stranger, "/prompts?scope=public&search=pendingword")).toEqual(
      [],
    );
    expect(await idsOf(workspaces.own, "/prompts?search=pendingword")).toEqual([id]);
    await json(workspaces.stranger("POST", `/prompts/${id}/star`));
    expect(await idsOf(workspaces.stranger, "/prompts?scope=starred&search=approvedword")).toEqual([
      id,
    ]);
    expect(await idsOf(workspaces.stranger, "/prompts?scope=starred&search=pendingword")).toEqual(
      [],
    );
  });

  test("hubs are found by name, slug and description, and public ones by everyone", async () => {
    const make = async (fields: object): Promise<string> =>
      textAt(await json(workspaces.own("POST", "/hubs", fields)), "id");
    const [closed, open] = [
      await make({ name: "Gnu herd" }),
      await make({ name: "Open", description: "gnus", visibility: "public" }),
    ];
    expect(await find("/hubs?", "gnu")).toEqual([open, closed]);
    expect(await idsOf(workspaces.stranger, "/hubs?scope=public&search=gnu")).toEqual([open]);
  });
});
