import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startTwoWorkspaces, strangersKey, type TwoWorkspaces } from "../api/two-workspaces.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";

let two: TwoWorkspaces;
const directory = mkdtempSync(join(tmpdir(), "switchyard-files-"));
beforeAll(async () => {
  const files = { place: { directory }, quotaBytesOf: () => 1e6 };
  two = await startTwoWorkspaces(async () => undefined, { files });
});
afterAll(async () => {
  await two.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function uploadAs(
  secret: string,
  content = "secret",
  purpose = "user_data",
): Promise<string> {
  const body = new FormData();
  body.append("file", new Blob([content]), "s.txt");
  body.append("purpose", purpose);
  const answer = await fetch(`${two.gateway().baseUrl}/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
    body,
  });
  return ((await answer.json()) as { id: string }).id;
}

test("files and uploads of another workspace answer 404 to every verb, and are not listed", async () => {
  const id = await uploadAs(strangersKey);
  const asked = { bytes: 1, filename: "x", mime_type: "", purpose: "user_data" };
  const begun = await two.stranger("POST", "/uploads", asked);
  const { id: uploadId } = (await begun.json()) as { id: string };
  const calls = [
    ["GET", `/files/${id}`],
    ["GET", `/files/${id}/content`],
    ["DELETE", `/files/${id}`],
    ["POST", `/uploads/${uploadId}/complete`, { part_ids: ["part_1"] }],
    ["POST", `/uploads/${uploadId}/cancel`],
  ] as const;
  for (const [method, path, body] of calls)
    expect((await two.own(method, path, body)).status).toBe(404);
  expect(await (await two.own("GET", "/files")).json()).toMatchObject({ data: [] });
  expect((await two.stranger("GET", `/files/${id}/content`)).status).toBe(200);
  expect((await two.as(testManagementKey)("GET", "/files")).status).toBe(200);
});

test("cursors of lists: no id is 400, a foreign or unknown batch 404, and a file that is gone a place", async () => {
  const theirs = await uploadAs(strangersKey);
  const [first, second] = [await uploadAs(testLlmKey), await uploadAs(testLlmKey)];
  const ask = two.as(testLlmKey);
  await ask("DELETE", `/files/${second}`);
  const page = await ask("GET", `/files?after=${second}`);
  expect(await page.json()).toMatchObject({ data: [{ id: first }], has_more: false });
  // It is newer than those here, and does not show.
  const foreign = await ask("GET", `/files?after=${theirs}&order=asc`);
  expect(JSON.stringify(await foreign.json())).not.toContain(theirs);
  const unknown = `batch_${"0".repeat(32)}`;
  for (const [path, status, param] of [
    ["/files?after=nonsense", 400, "after"],
    ["/batches?after=nonsense", 404, "after"],
    [`/batches?after=${unknown}`, 404, "after"],
    ["/messages/batches?after_id=nonsense", 400, undefined],
    ["/messages/batches?before_id=nonsense", 400, undefined],
    [`/messages/batches?after_id=msg${unknown}`, 200, undefined],
  ] as const) {
    const answer = await ask("GET", path);
    expect([path, answer.status]).toEqual([path, status]);
    if (param !== undefined) expect(await answer.json()).toMatchObject({ error: { param } });
  }
});

test("batches of another workspace answer 404 to every verb, and take no foreign file", async () => {
  const line = {
    custom_id: "a",
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "acme/large", messages: [{ role: "user", content: "secret" }] },
  };
  const id = await uploadAs(strangersKey, JSON.stringify(line), "batch");
  const asked = {
    input_file_id: id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  };
  expect(await (await two.as(testLlmKey)("POST", "/batches", asked)).json()).toMatchObject({
    error: { param: "input_file_id" },
  });
  const created = await two.stranger("POST", "/keys", { name: "theirs" });
  const { key } = (await created.json()) as { key: string };
  const ask = two.as(key);
  const made = (await (await ask("POST", "/batches", asked)).json()) as { id: string };
  const requests = [{ custom_id: "a", params: { ...line.body, max_tokens: 5 } }];
  const begun = await ask("POST", "/messages/batches", { requests });
  const { id: messagesId } = (await begun.json()) as { id: string };
  const calls = [
    ["GET", `/batches/${made.id}`],
    ["POST", `/batches/${made.id}/cancel`],
    ["GET", `/messages/batches/${messagesId}`],
    ["GET", `/messages/batches/${messagesId}/results`],
    ["POST", `/messages/batches/${messagesId}/cancel`],
    ["DELETE", `/messages/batches/${messagesId}`],
    ["GET", `/batches/${messagesId}`],
  ] as const;
  for (const [method, path] of calls) expect((await two.own(method, path)).status).toBe(404);
  for (const path of ["/batches", "/messages/batches"])
    expect(await (await two.own("GET", path)).json()).toMatchObject({ data: [] });
  expect((await two.stranger("GET", `/batches/${made.id}`)).status).toBe(200);
  expect((await two.stranger("GET", `/messages/batches/${messagesId}`)).status).toBe(200);
});

test("files survive a restart", async () => {
  const id = await uploadAs(strangersKey);
  await two.restart();
  expect(await (await two.stranger("GET", `/files/${id}/content`)).text()).toBe("secret");
});
