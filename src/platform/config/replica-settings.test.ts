import { expect, test } from "bun:test";
import { z } from "zod";
import { effectiveSettings } from "./configuration.ts";
import { withSecretFiles } from "./environment-settings.ts";
import { loadConfiguration } from "./load-configuration.ts";

const load = (environment: Record<string, string>, yaml = "") =>
  loadConfiguration({
    environment,
    workingDirectory: "/srv",
    providerSchema: async () => z.unknown(),
    readFile: () => yaml,
  });

const primary = "postgres://gateway:pw@primary/gateway";
const replica = "postgres://gateway:pw@replica/gateway";
const yaml = `storage: { url: "${primary}", replica_url: "${replica}" }\n`;

test("the replica URL comes from the file, its variable or a secret file, the variable first", async () => {
  expect((await load({}, yaml)).storage.replicaUrl).toBe(replica);
  const other = "postgresql://other/gateway";
  expect((await load({ DATABASE_REPLICA_URL: other }, yaml)).storage.replicaUrl).toBe(other);
  const environment = withSecretFiles({ DATABASE_REPLICA_URL_FILE: "/run/r" }, () => `${other}\n`);
  expect(environment["DATABASE_REPLICA_URL"]).toBe(other);
  expect((await load({ DATABASE_URL: primary })).storage.replicaUrl).toBeUndefined();
});

test("effective settings show the replica URL without its password", async () => {
  expect(effectiveSettings(await load({}, yaml), { environment: {}, file: {} })).toContainEqual(
    expect.objectContaining({
      key: "storage.replica_url",
      value: "postgres://***:***@replica/gateway",
    }),
  );
});

test("a replica URL that is not Postgres, or a replica of SQLite, is refused", async () => {
  await expect(
    load({ DATABASE_URL: primary, DATABASE_REPLICA_URL: "sqlite:other.db" }),
  ).rejects.toThrow('DATABASE_REPLICA_URL: expected a postgres:// URL, got "');
  await expect(load({ DATABASE_REPLICA_URL: replica })).rejects.toThrow(
    "storage.replica_url: a replica needs Postgres as the database: set storage.url (DATABASE_URL)",
  );
});
