import { buildStorage } from "./app/build-storage.ts";
import { loadConfiguration } from "./platform/config/load-configuration.ts";
import { withSecretFiles } from "./platform/config/secret-files.ts";
import { migrations } from "./platform/storage/migrations/index.ts";
import { createLogger } from "./platform/telemetry/logger.ts";

/** Runs the migrations that the configured database lacks, for a job that does so before gateways start with `--no-migrate`. */
async function migrateDatabase(): Promise<void> {
  process.umask(0o077);
  const { storage, shared, logLevel } = await loadConfiguration({
    environment: withSecretFiles(process.env), workingDirectory: process.cwd(),
    providerSchema: async () => (await import("./inference/catalog/configured-provider.ts")).configuredProviderSchema,
  });
  const settings = {
    storageUrl: storage.url, durability: storage.durability, sharedUrl: shared.url === "memory:" ? undefined : shared.url,
    waitMs: storage.waitMs,
  };
  await (await buildStorage(settings, createLogger({ level: logLevel }))).close();
}

try {
  await migrateDatabase();
  console.log(`the database has the ${migrations.length} migrations of this release`);
  process.exit(0);
} catch (error) {
  console.error(`the database was not migrated: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
