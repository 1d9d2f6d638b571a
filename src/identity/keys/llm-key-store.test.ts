import { expect, test } from "bun:test";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { plainLlmKey } from "../../../test/support/plain-llm-key.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import { WorkspaceStore } from "../workspaces/workspace-store.ts";
import { LlmKeyStore } from "./llm-key-store.ts";

test("the creator of a key is found among more ids than a statement of Postgres takes", async () => {
  const storage = await openStorage({
    url: await migratedDatabase(),
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  const store = new LlmKeyStore(withTables(storage.database));
  const key = plainLlmKey({ hash: "hash", workspaceId: "ws" });
  const workspace = { id: "ws", name: "w", plan: "free", createdAtMs: 1 } as const;
  await new WorkspaceStore(withTables(storage.database)).insert(workspace);
  await store.insert(key);
  const ids = [...Array.from({ length: 65_536 }, (_, index) => `run_${index}`), key.id];
  const { name, creatorUserId } = key;
  expect(await store.creatorsOf("ws", ids)).toEqual(new Map([[key.id, { name, creatorUserId }]]));
  await storage.close();
}, 60_000);
