import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError } from "./configuration-error.ts";
import { loadEncryptionKey } from "./encryption-key.ts";

const root = mkdtempSync(join(tmpdir(), "switchyard-key-"));
const dataDirectory = join(root, "data");
afterEach(() => rmSync(root, { recursive: true, force: true }));

test("the configured encryption key is used", () => {
  const configured = Buffer.alloc(32, 7).toString("base64");
  expect(loadEncryptionKey({ configured, dataDirectory, embedded: false })).toEqual(
    new Uint8Array(32).fill(7),
  );
});

test("an embedded gateway creates a private key file and reuses it", () => {
  const made = loadEncryptionKey({ configured: undefined, dataDirectory, embedded: true });
  expect(made.length).toBe(32);
  expect(statSync(join(dataDirectory, "encryption.key")).mode & 0o777).toBe(0o600);
  expect(loadEncryptionKey({ configured: undefined, dataDirectory, embedded: true })).toEqual(made);
});

test("a damaged key file is refused and never replaced", () => {
  loadEncryptionKey({ configured: undefined, dataDirectory, embedded: true });
  writeFileSync(join(dataDirectory, "encryption.key"), "");
  expect(() => loadEncryptionKey({ configured: undefined, dataDirectory, embedded: true })).toThrow(
    ConfigurationError,
  );
});

test("a data directory that cannot be written to is named with its variable", () => {
  mkdirSync(root, { recursive: true });
  const file = join(root, "file");
  writeFileSync(file, "");
  const below = { configured: undefined, dataDirectory: join(file, "data"), embedded: true };
  expect(() => loadEncryptionKey(below)).toThrow(/^SWITCHYARD_DATA_DIR: .*cannot be written to/);
});

test("a database without its key is refused, and no new key is created", () => {
  const lost = { configured: undefined, dataDirectory, embedded: true, databaseExists: true };
  expect(() => loadEncryptionKey(lost)).toThrow("the database exists");
  expect(() => statSync(join(dataDirectory, "encryption.key"))).toThrow("ENOENT");
});

test("Postgres requires a configured encryption key", () => {
  expect(() =>
    loadEncryptionKey({ configured: undefined, dataDirectory, embedded: false }),
  ).toThrow("SWITCHYARD_ENCRYPTION_KEY: is required with Postgres");
});
