import { expect, test } from "bun:test";
import { CredentialUses } from "./credential-uses.ts";
import { CredentialUseWriter } from "./credential-use-writer.ts";
import type { CredentialUseStore } from "./credential-use-store.ts";

function writerOn(write: (uses: readonly { id: string; atMs: number }[]) => Promise<void>) {
  const uses = new CredentialUses();
  const errors: unknown[] = [];
  const store = { write } as Partial<CredentialUseStore> as CredentialUseStore;
  return {
    uses,
    errors,
    writer: new CredentialUseWriter({ uses, store, onError: (error) => errors.push(error) }),
  };
}

test("many uses of a key are written as one row, and are not written again", async () => {
  const written: unknown[] = [];
  const { uses, writer } = writerOn(async (batch) => void written.push(batch));
  for (let atMs = 1; atMs <= 1_000; atMs += 1) uses.note("key_a", atMs);
  uses.note("mgk_b", 7);
  await writer.flush();
  await writer.flush();
  expect(written).toEqual([
    [
      { id: "key_a", atMs: 1_000 },
      { id: "mgk_b", atMs: 7 },
    ],
  ]);
  expect([uses.lastUsedAtMs("key_a"), uses.lastUsedAtMs("key_none")]).toEqual([1_000, null]);
});

test("uses that the database refuses are logged, and written with the next batch", async () => {
  const written: unknown[] = [];
  let fails = true;
  const { uses, errors, writer } = writerOn(async (batch) => {
    if (fails) throw new Error("down");
    written.push(batch);
  });
  uses.note("key_a", 1);
  await writer.flush();
  expect(errors).toHaveLength(1);
  fails = false;
  uses.note("key_a", 2);
  await writer.stop();
  expect(written).toEqual([[{ id: "key_a", atMs: 2 }]]);
});
