import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { ConfigurationError } from "../config/configuration-error.ts";
import { KeyVault, createMasterKeys, open, seal, sealingKeyIdOf } from "./key-vault.ts";
import type { DataKeyStore, WrappedDataKey } from "./data-key-store.ts";
import { createSecretKey } from "node:crypto";

/** Data keys in memory. */
class Rows {
  readonly rows = new Map<string, WrappedDataKey>();

  asStore(): DataKeyStore {
    const store: Partial<DataKeyStore> = {
      loadAll: () => Promise.resolve([...this.rows.values()]),
      find: (workspaceId) =>
        Promise.resolve([...this.rows.values()].find((row) => row.workspaceId === workspaceId)),
      insert: async (row) => {
        await Promise.resolve();
        if ([...this.rows.values()].some(({ workspaceId }) => workspaceId === row.workspaceId))
          throw new Error("not unique");
        this.rows.set(row.id, row);
      },
      rewrap: (id, { from, to }) => {
        const row = this.rows.get(id);
        if (row?.wrapped === from) this.rows.set(id, { ...row, wrapped: to });
        return Promise.resolve();
      },
    };
    return store as DataKeyStore;
  }
}

const secret = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const openVault = (rows: Rows, current: number, ...previous: number[]): Promise<KeyVault> =>
  KeyVault.open({
    store: rows.asStore(),
    clock: new FakeClock(),
    masterKeys: createMasterKeys({ current: secret(current), previous: previous.map(secret) }),
  });

const place = { workspaceId: "ws_1", providerId: "openai", id: "byok_1" };

test("two gateways that seal a workspace's first keys at once create one data key", async () => {
  const rows = new Rows();
  const vaults = await Promise.all([openVault(rows, 1), openVault(rows, 1)]);
  const sealed = await Promise.all(vaults.map((vault) => vault.seal(place, "sk-mine")));
  expect(rows.rows.size).toBe(1);
  for (const vault of vaults)
    expect(sealed.map((text) => vault.open(place, text))).toEqual(["sk-mine", "sk-mine"]);
});

test("a sealed key opens after a restart, and each workspace has its own data key", async () => {
  const rows = new Rows();
  const vault = await openVault(rows, 1);
  const sealed = await vault.seal(place, "sk-mine");
  const theirs = { ...place, workspaceId: "ws_2" };
  const [other] = await Promise.all(
    ["sk-theirs", "sk-theirs-too"].map((key) => vault.seal(theirs, key)),
  );
  expect(rows.rows.size).toBe(2);
  const again = await openVault(rows, 1);
  expect(again.open(place, sealed)).toBe("sk-mine");
  expect(again.open(theirs, other ?? "")).toBe("sk-theirs");
  expect(() => again.open(theirs, sealed)).toThrow();
  expect(() => again.open({ ...place, id: "byok_2" }, sealed)).toThrow();
});

test("a record's text opens only for its place, on every gateway, with a separate data key", async () => {
  const rows = new Rows();
  const [vault, other] = [await openVault(rows, 1), await openVault(rows, 1)];
  const record = { workspaceId: "ws_1", id: "gen_1", facts: ["request", "key_1"] };
  const sealed = await vault.sealRecord(record, plain);
  await other.learn("ws_1");
  for (const each of [vault, other])
    expect(each.openRecord(record, sealed)).toEqual(Buffer.from(plain));
  await vault.seal({ ...place, workspaceId: "ws_2" }, "sk-theirs");
  for (const change of [
    { workspaceId: "ws_2" },
    { workspaceId: "ws_3" },
    { id: "gen_2" },
    { facts: ["answer", "key_1"] },
    { facts: ["request"] },
  ])
    expect(() => vault.openRecord({ ...record, ...change }, sealed)).toThrow();
  // Neither does it pass as a provider's key, nor one as a record.
  expect(() =>
    vault.open({ workspaceId: "ws_1", providerId: "gen_1", id: "request" }, sealed),
  ).toThrow();
  const key = await vault.seal(place, "sk-mine");
  expect(() => vault.openRecord({ ...record, id: "openai", facts: ["byok_1"] }, key)).toThrow();
});

test("database rows without the master key open nothing", async () => {
  const rows = new Rows();
  const sealed = await (await openVault(rows, 1)).seal(place, "sk-mine");
  await expect(openVault(rows, 2)).rejects.toThrow(ConfigurationError);
  const [row] = rows.rows.values();
  // An attacker that has the rows may also put in a data key of its own: the sealed text names
  // another one.
  const forged = new Rows();
  await (await openVault(forged, 2)).seal(place, "x");
  await expect(openVault(forged, 2).then((vault) => vault.open(place, sealed))).rejects.toThrow();
  expect(JSON.stringify([row, sealed])).not.toContain("sk-mine");
});

test("a rotation rewraps data keys, keeps sealed keys, and disables the old master key", async () => {
  const rows = new Rows();
  const sealed = await (await openVault(rows, 1)).seal(place, "sk-mine");
  const before = [...rows.rows.values()];
  const rotated = await openVault(rows, 2, 1);
  expect(rotated.open(place, sealed)).toBe("sk-mine");
  expect([...rows.rows.values()]).not.toEqual(before);
  expect((await openVault(rows, 2)).open(place, sealed)).toBe("sk-mine");
  await expect(openVault(rows, 1)).rejects.toThrow("SWITCHYARD_SECRETS_KEY_PREVIOUS");
});

test("a data key moved to another workspace's row is refused", async () => {
  const rows = new Rows();
  const vault = await openVault(rows, 1);
  await vault.seal(place, "sk-mine");
  const [row] = rows.rows.values();
  const moved = new Rows();
  if (row !== undefined) moved.rows.set(row.id, { ...row, workspaceId: "ws_2" });
  await expect(openVault(moved, 1)).rejects.toThrow();
});

const keyOf = (byte: number) => ({
  id: `k${byte}`,
  key: createSecretKey(new Uint8Array(32).fill(byte)),
});
const plain = new TextEncoder().encode("sk-a-key-of-somebody");
const binding = ["ws_1", "openai", "byok_1"];

test("sealed text names its version and key, and does not contain the plain text", () => {
  const sealed = seal(keyOf(1), { plain, binding });
  expect(sealed).toMatch(/^v1\|k1\|[\w-]{16}\|[\w-]+$/);
  expect(sealingKeyIdOf(sealed)).toBe("k1");
  expect(Buffer.from(sealed.split("|")[3] ?? "", "base64url").toString("latin1")).not.toContain(
    "sk-a-key-of",
  );
  expect(open(keyOf(1), { sealed, binding }).toString()).toBe("sk-a-key-of-somebody");
});

test("the same text is sealed differently each time", () => {
  expect(seal(keyOf(1), { plain, binding })).not.toBe(seal(keyOf(1), { plain, binding }));
});

test.each([
  ["another workspace", ["ws_2", "openai", "byok_1"]],
  ["another provider", ["ws_1", "anthropic", "byok_1"]],
  ["another record", ["ws_1", "openai", "byok_2"]],
  // Without borders between the parts, this would be the same binding.
  ["parts that are equal only when joined", ["ws_1o", "penai", "byok_1"]],
])("sealed text does not open for %s", (_, elsewhere) => {
  const sealed = seal(keyOf(1), { plain, binding });
  expect(() => open(keyOf(1), { sealed, binding: elsewhere })).toThrow();
});

test("sealed text does not open with another key", () => {
  expect(() => open(keyOf(2), { sealed: seal(keyOf(1), { plain, binding }), binding })).toThrow();
});

test("changed or truncated sealed text is refused", () => {
  const sealed = seal(keyOf(1), { plain, binding });
  const [version, id, nonce = "", body = ""] = sealed.split("|");
  const flipped = (text: string, at: number): string =>
    text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
  for (let at = 0; at < body.length - 1; at += 1) {
    expect(() =>
      open(keyOf(1), { sealed: [version, id, nonce, flipped(body, at)].join("|"), binding }),
    ).toThrow();
  }
  for (let at = 0; at < nonce.length; at += 1) {
    expect(() =>
      open(keyOf(1), { sealed: [version, id, flipped(nonce, at), body].join("|"), binding }),
    ).toThrow();
  }
  for (const short of ["", "v1|k1||", `v1|k1|${nonce}|`, `v1|k1|${nonce}|${body.slice(0, 10)}`]) {
    expect(() => open(keyOf(1), { sealed: short, binding })).toThrow();
  }
  expect(sealingKeyIdOf("v2|k1|a|b")).toBeUndefined();
  expect(sealingKeyIdOf("nonsense")).toBeUndefined();
});
