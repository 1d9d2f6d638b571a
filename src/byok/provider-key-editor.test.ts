import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../test/support/migrated-sqlite.ts";
import { CredentialUses } from "../identity/keys/credential-uses.ts";
import type { GatewayError } from "../platform/kernel/errors.ts";
import { WorkspaceStore } from "../identity/workspaces/workspace-store.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { Storage } from "../platform/storage/storage.ts";
import { withTables } from "../platform/storage/with-tables.ts";
import { type Byok, type ByokTables, openByok } from "./open-byok.ts";
import { ProviderKeyEditor, type ProviderKeyReference } from "./provider-key-editor.ts";
import { ProviderKeyStore } from "./provider-key-store.ts";
import type { ProviderKey } from "./provider-key.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-byok-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const workspaceId = "ws_1";
const [oldSecret, newSecret] = ["sk-old-secret-111", "sk-new-secret-222"];

let storage: Storage<ByokTables>;
let [here, there]: [Byok, Byok] = [undefined as never, undefined as never];
let key: ProviderKeyReference & ProviderKey;

/** Opens the provider keys of a gateway on the database, with a memory of its own. */
const openGateway = (): Promise<Byok> =>
  openByok({
    database: storage.database,
    clock: new FakeClock(),
    uses: new CredentialUses(),
    masterSecrets: { current: new Uint8Array(32).fill(7), previous: [] },
    onError: (error) => {
      throw error;
    },
  });

beforeEach(async () => {
  storage = await openStorage<ByokTables>({
    url: await putMigratedSqlite(mkdtempSync(join(root, "test-"))),
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  await new WorkspaceStore(withTables(storage.database)).insert({
    id: workspaceId,
    name: "one",
    plan: "payg",
    createdAtMs: 0,
  });
  here = await openGateway();
  key = await here.providerKeyEditor.create({
    workspaceId,
    providerId: "acme",
    label: "",
    enabled: true,
    source: "api",
    quota: null,
    secret: oldSecret,
  });
  // This gateway has not received the changes that the other one makes from now on.
  there = await openGateway();
});
afterEach(() => storage.close());

test("a change keeps what another gateway changed in other fields", async () => {
  await here.providerKeyEditor.change(key, { secret: newSecret });
  await there.providerKeyEditor.change(key, { enabled: false });
  const next = await openGateway();
  const stored = next.providerKeyEditor.find(key);
  expect([next.providerKeys.secretOf(stored), stored.enabled]).toEqual([newSecret, false]);
});

test("a change keeps what was read again from the database during its write", async () => {
  const { providerKeyDirectory: directory, providerKeyVault: vault } = there;
  class SlowStore extends ProviderKeyStore {
    override async update(...states: [ProviderKey, ProviderKey]): Promise<boolean> {
      const isWritten = await super.update(...states);
      directory.put({ ...key, enabled: false });
      return isWritten;
    }
  }
  const store = new SlowStore(withTables(storage.database));
  const editor = new ProviderKeyEditor({ store, directory, vault, clock: new FakeClock() });
  expect(await editor.change(key, { label: "mine" })).toMatchObject({
    label: "mine",
    enabled: false,
  });
  expect(directory.find(key.id)).toMatchObject({ label: "mine", enabled: false });
});

test("a change of a key that another gateway deleted does not bring it back", async () => {
  await here.providerKeyEditor.remove(key);
  const outcome = await there.providerKeyEditor
    .change(key, { enabled: false })
    .catch((error: GatewayError) => error.code);
  expect(outcome).toBe("not_found");
  expect(there.providerKeyDirectory.find(key.id)).toBeUndefined();
});
