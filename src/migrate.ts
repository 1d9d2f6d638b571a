import { buildStorage } from "./app/build-storage.ts";
import { readConfiguration, storageSettingsOf } from "./app/settings-of.ts";
import { withSecretFiles } from "./platform/config/secret-files.ts";
import { migrations } from "./platform/storage/migrations/index.ts";
import { createLogger } from "./platform/telemetry/logger.ts";

/** Runs the migrations that the configured database lacks, for a job that does so before gateways start with `--no-migrate`. */
async function migrateDatabase(): Promise<void> {
  process.umask(0o077);
  const configuration = await readConfiguration(withSecretFiles(process.env), process.cwd());
  const logger = createLogger({ level: configuration.logLevel });
  await (await buildStorage(storageSettingsOf(configuration), logger)).close();
}

try {
  await migrateDatabase();
  console.log(`the database has the ${migrations.length} migrations of this release`);
  process.exit(0);
} catch (error) {
  console.error(
    `the database was not migrated: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exit(1);
}
