import { beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { plainLlmKey } from "../../../test/support/plain-llm-key.ts";
import { CredentialDirectory } from "./credential-directory.ts";
import { LlmKeyEditor } from "./llm-key-editor.ts";
import { LlmKeyMinter } from "./llm-key-minter.ts";
import { createSecretHasher } from "./secret-hasher.ts";
import type { LlmKeyStore } from "./llm-key-store.ts";

const hasher = createSecretHasher(new Uint8Array(32));
const oldSecret = "sk-svc-v1-old";
const key = plainLlmKey({ hash: hasher.hash(oldSecret), workspaceId: "ws" });
const reference = { workspaceId: "ws", hash: key.hash };

let directory: CredentialDirectory;
beforeEach(() => {
  directory = new CredentialDirectory(hasher);
  directory.putWorkspace({ id: "ws", name: "w", plan: "free", createdAtMs: 1 });
  directory.putLlmKey(key);
});

const editorOn = (store: Partial<LlmKeyStore>): LlmKeyEditor =>
  new LlmKeyEditor({ store: store as LlmKeyStore, directory, hasher, clock: new FakeClock() });

test("a late result of a change does not restore a key that was deleted meanwhile", async () => {
  const answered = Promise.withResolvers<void>();
  const editor = editorOn({
    change: () => answered.promise.then(() => ({ ...key, name: "late" })),
    remove: () => Promise.resolve(),
  });
  const change = editor.change(reference, { name: "late" });
  const removal = editor.remove(reference);
  answered.resolve();
  await Promise.all([change, removal]);
  expect(directory.find(oldSecret)).toBeUndefined();
  expect(() => editor.find(reference)).toThrow(expect.objectContaining({ code: "not_found" }));
});

test("of two concurrent rotations, the second is a conflict and the first secret is valid", async () => {
  const editor = editorOn({
    rotate: (_, { hash, label }) => Promise.resolve({ ...key, hash, label }),
  });
  const [first, second] = await Promise.allSettled([
    editor.rotate(reference),
    editor.rotate(reference),
  ]);
  expect(second).toMatchObject({ status: "rejected", reason: { code: "conflict" } });
  if (first?.status !== "fulfilled") throw new Error("the first rotation failed");
  expect(directory.find(first.value.secret)).toMatchObject({ key: { id: "key_1" } });
  expect(directory.find(oldSecret)).toBeUndefined();
});

test("a rotation is a conflict if another gateway rotated the key first", async () => {
  const editor = editorOn({ rotate: () => Promise.resolve(undefined) });
  await expect(editor.rotate(reference)).rejects.toMatchObject({ code: "conflict" });
  expect(directory.find(oldSecret)).toBeDefined();
});

describe("a key write whose connection breaks", () => {
  const broken = () => Promise.reject(new Error("connection lost"));

  test("takes effect if the database committed it", async () => {
    const editor = editorOn({
      change: broken,
      find: () => Promise.resolve({ ...key, disabled: true }),
    });
    await expect(editor.change(reference, { disabled: true })).rejects.toThrow("connection lost");
    expect(directory.find(oldSecret)).toMatchObject({ key: { disabled: true } });
  });

  test("deletes the key if its row is gone", async () => {
    const editor = editorOn({ remove: broken, find: () => Promise.resolve(undefined) });
    await expect(editor.remove(reference)).rejects.toThrow("connection lost");
    expect(directory.find(oldSecret)).toBeUndefined();
  });

  test("changes nothing while the database is unreachable", async () => {
    const editor = editorOn({ change: broken, find: broken });
    await expect(editor.change(reference, { disabled: true })).rejects.toThrow("connection lost");
    expect(directory.find(oldSecret)).toMatchObject({ key: { disabled: false } });
  });
});

test("keys minted in the same millisecond have distinct creation times, in order", async () => {
  const hasher = createSecretHasher(new Uint8Array(32));
  const clock = new FakeClock();
  const store = { insert: () => Promise.resolve() } as Partial<LlmKeyStore> as LlmKeyStore;
  const directory = new CredentialDirectory(hasher);
  const minter = new LlmKeyMinter({ store, directory, hasher, clock });
  const mint = () => minter.mint({ workspaceId: "ws_1", name: "k", creatorUserId: "usr_1" });
  const keys = await Promise.all([mint(), mint(), mint()]);
  const times = keys.map(({ key }) => key.createdAtMs - clock.nowMs());
  expect(times).toEqual([0, 1, 2]);
  const ids = keys.map(({ key }) => key.id);
  expect([...ids].sort()).toEqual(ids);
});
