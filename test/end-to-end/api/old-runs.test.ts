import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testManagementKey } from "../../support/gateway.ts";
import { putMigratedSqlite } from "../../support/migrated-sqlite.ts";
import { endProcesses, temporaryDirectory } from "../../support/process.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";

afterAll(endProcesses);

/** Adds runs to a database that are newer than its only one. */
function addNewerRuns(path: string, count: number): void {
  using database = new Database(path);
  database.run("pragma busy_timeout = 5000");
  database.run("create temp table newer as select * from runs");
  database.run("update newer set released_at_ms = 1, ended_at_ms = 1");
  const names = database
    .query<{ name: string }, []>("pragma table_info(runs)")
    .all()
    .map(({ name }) => name);
  const values = names.map((name) =>
    name === "id" || name === "hash" ? `${name} || 'z' || n` : name,
  );
  database.run(
    `insert into runs (${names.join()}) with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${count}) ` +
      `select ${values.join()} from newer, counted`,
  );
}

test("what a run used is known by its name and person, however many runs are newer", async () => {
  const directory = temporaryDirectory();
  const storageUrl = await putMigratedSqlite(directory);
  const gateway = await startGateway({ storageUrl, sandbox: true });
  const headers = { authorization: `Bearer ${testManagementKey}` };
  const read = async (path: string): Promise<unknown> => (await gateway.get(path, headers)).json();
  const run: unknown = await (await gateway.post("/runs", { name: "nightly", limit: 1 })).json();
  const request = chatRequest({ model: "sandbox/chat:free" });
  const asRun = { headers: { authorization: `Bearer ${textAt(run, "key")}` } };
  await (await gateway.post("/chat/completions", request, asRun)).text();
  const rows = async (): Promise<unknown[]> => listAt(await read("/analytics/generations"), "data");
  const userId = textAt((await rows())[0], "user_id");
  const runId = textAt(run, "data.id");
  addNewerRuns(join(directory, "test.db"), 5_000);
  expect(await rows()).toMatchObject([{ key_id: runId, key_name: "nightly", user_id: userId }]);
  expect(at(await read(`/activity?user_id=${userId}`), "data")).toMatchObject([{ requests: 1 }]);
  for (const [group, id] of [
    ["user", userId],
    ["key", runId],
  ])
    expect(at(await read(`/analytics/spend?group_by=${group}`), "data")).toMatchObject([{ id }]);
  await gateway.stop();
});
