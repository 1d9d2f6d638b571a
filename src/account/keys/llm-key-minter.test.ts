import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { CredentialDirectory } from "./credential-directory.ts";
import { LlmKeyMinter } from "./llm-key-minter.ts";
import type { LlmKeyStore } from "./llm-key-store.ts";
import { createSecretHasher } from "./secret-hasher.ts";

test("keys that are minted in one millisecond still have an order", async () => {
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
