import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at } from "./support/at.ts";
import { eventually } from "./support/eventually.ts";
import { readReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
const directory = mkdtempSync(join(tmpdir(), "switchyard-scenario-"));
afterEach(async () => {
  await scene.end();
  rmSync(directory, { recursive: true, force: true });
});

const bootstrap = (creditsNanoUsd: bigint) => ({
  llmKey: testLlmKey,
  managementKey: testManagementKey,
  creditsNanoUsd,
  plan: "enterprise" as const,
});

const ask = async (secret = testLlmKey): Promise<number> =>
  (
    await readReply(
      await scene.gateway.post(
        "/chat/completions",
        { ...chatRequest(), max_tokens: 1 },
        { headers: { authorization: `Bearer ${secret}` } },
      ),
    )
  ).status;

const keyOf = async (secret: string): Promise<unknown> =>
  at(await (await scene.gateway.get("/key", { authorization: `Bearer ${secret}` })).json(), "data");

test("a rotated key keeps its spending and its limit, also after a restart", async () => {
  const settings = {
    storageUrl: `sqlite:${join(directory, "gateway.db")}`,
    bootstrap: bootstrap(10_000_000_000n),
  };
  scene = await startScene({ settings });
  const created = await scene.gateway.post(
    "/keys",
    { name: "limited", limit: 0.00005 },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const { key: secret, data } = (await created.json()) as { key: string; data: { id: string } };
  expect([await ask(secret), await ask(secret)]).toEqual([200, 200]);
  expect(await keyOf(secret)).toMatchObject({ usage: 0.000032, limit_remaining: 0.000018 });

  // Two keys exchange their secrets: what rotation does to a record, with a secret that is known.
  const { database } = scene.gateway.app.storage;
  const other = await database
    .selectFrom("llm_keys")
    .select(["id", "hash"])
    .where("id", "!=", data.id)
    .executeTakeFirstOrThrow();
  const own = await database
    .selectFrom("llm_keys")
    .select("hash")
    .where("id", "=", data.id)
    .executeTakeFirstOrThrow();
  await sql`update llm_keys set hash = 'x' || ${other.hash} where id = ${data.id}`.execute(
    database,
  );
  await sql`update llm_keys set hash = ${own.hash} where id = ${other.id}`.execute(database);
  await sql`update llm_keys set hash = ${other.hash} where id = ${data.id}`.execute(database);
  await scene.end();
  scene = await startScene({ settings });

  expect(await keyOf(testLlmKey)).toMatchObject({
    usage: 0.000032,
    limit: 0.00005,
    limit_remaining: 0.000018,
  });
  expect([await ask(testLlmKey), await ask(testLlmKey)]).toEqual([200, 402]);
  expect(await keyOf(secret)).toMatchObject({ usage: 0, limit: null });
});

describe("a top-up applies to the very next request", () => {
  const topUp = (amountNano: bigint): Promise<void> => {
    const [workspaceId = ""] = workspaceIds;
    return scene.gateway.app.ledger.credit({
      id: `txn_${amountNano}`,
      workspaceId,
      bucket: "topup",
      amountNano,
      kind: "topup",
      reference: null,
    });
  };
  let workspaceIds: string[] = [];

  test("from an empty balance, and each time it is spent", async () => {
    scene = await startScene({ settings: { bootstrap: bootstrap(0n) } });
    const rows = await scene.gateway.app.storage.database
      .selectFrom("workspaces")
      .select("id")
      .execute();
    workspaceIds = rows.map(({ id }) => id);
    expect(await ask()).toBe(402);
    await topUp(17_000n);
    expect([await ask(), await ask()]).toEqual([200, 402]);
    await topUp(32_000n);
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 402]);
  });

  test("while requests are running", async () => {
    scene = await startScene({ settings: { bootstrap: bootstrap(0n) } });
    const rows = await scene.gateway.app.storage.database
      .selectFrom("workspaces")
      .select("id")
      .execute();
    workspaceIds = rows.map(({ id }) => id);
    await topUp(17_000n);
    const gate = scene.acme.gate();
    scene.acme.enqueue([gate]);
    const first = ask();
    await gate.reached;
    // The first request holds what it may cost; the rest, and what is added, is there for others.
    await topUp(1_000_000n);
    expect(await ask()).toBe(200);
    scene.acme.stop();
    expect(await first).toBe(502);
    await eventually("every hold is back", () => scene.gateway.app.ledger.openHoldCount === 0);
  });
});
