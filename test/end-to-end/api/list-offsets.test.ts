import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway, testManagementKey } from "../../support/gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";

let gateway: TestGateway;

const manage = (method: string, path: string, body?: unknown): Promise<Response> =>
  fetch(gateway.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function make(path: string, body: unknown): Promise<unknown> {
  const made = await manage("POST", path, body);
  const answer: unknown = await made.json();
  if (!made.ok) throw new Error(`POST ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

const names = ["one", "two", "three", "four", "five", "six"];

beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
  const workspace = textAt(await (await manage("GET", "/key")).json(), "data.workspace_id");
  for (const name of names) {
    await make("/hubs", { name, slug: name });
    await make("/hubs/one/items", { kind: "kb", name, body: `# ${name}\n\nWords.` });
    await make("/prompts", {
      title: name,
      description: name,
      category: "paging",
      tags: [],
      body: "Words.",
      visibility: "public",
    });
    await make("/admin/grants", { workspace_id: workspace, amount: 1, bucket: "topup" });
    const messages = [{ role: "user", content: name }];
    await make("/conversations", { title: name, messages });
    const served = await gateway.post("/chat/completions", {
      model: "sandbox/chat:free",
      messages,
    });
    expect(served.status).toBe(200);
  }
}, 240_000);
afterAll(() => gateway.stop());

const lists = [
  "/hubs?",
  "/hubs/one/items?",
  "/prompts?",
  "/admin/prompts?",
  "/conversations?",
  "/credits/transactions?",
  "/security/audit?",
  "/analytics/generations?",
  "/analytics/generations?status=completed&",
  "/admin/generations?",
];

test.each(lists)("%s takes an offset where it takes a cursor", async (list) => {
  const ask = async (query: string): Promise<unknown> =>
    (await manage("GET", `${list}${query}`)).json();
  const idsOf = (page: unknown): string[] => listAt(page, "data").map((row) => textAt(row, "id"));
  const all = idsOf(await ask("limit=50"));
  expect(all.length).toBeGreaterThanOrEqual(names.length);
  const page = await ask("limit=2&offset=1");
  expect(idsOf(page)).toEqual(all.slice(1, 3));
  const next = `limit=2&cursor=${encodeURIComponent(textAt(page, "next_cursor"))}`;
  expect(idsOf(await ask(next))).toEqual(all.slice(3, 5));
  // A cursor alone says where a page begins.
  expect(idsOf(await ask(`${next}&offset=1`))).toEqual(all.slice(3, 5));
  const end = await ask(`limit=50&offset=${all.length - 1}`);
  expect([idsOf(end), at(end, "has_more")]).toEqual([all.slice(-1), false]);
  expect(idsOf(await ask("limit=2&offset=9999"))).toEqual([]);
  for (const wrong of ["-1", "x", "1.5", "99999999"])
    expect(await errorOf(await manage("GET", `${list}offset=${wrong}`))).toMatchObject({
      status: 400,
      param: "offset",
    });
});
