import { buildStorage } from "./app/parts/build-storage.ts";
import { encryptionKeyOf, readConfiguration, storageSettingsOf } from "./app/settings-of.ts";
import { countText } from "./platform/kernel/count-text.ts";
import { migrations } from "./platform/storage/migrations/index.ts";
import { createLogger } from "./platform/telemetry/logger.ts";

/**
 * Runs the migrations that the configured database lacks, for a job that does so before gateways
 * start with `--no-migrate`.
 */
async function migrateDatabase(): Promise<void> {
  process.umask(0o077);
  const configuration = await readConfiguration({
    environment: process.env,
    workingDirectory: process.cwd(),
  });
  const logger = createLogger({ level: configuration.logLevel });
  // An embedded database without its key is refused by every later start.
  if (configuration.storage.embedded) encryptionKeyOf(configuration);
  await (await buildStorage(storageSettingsOf(configuration), logger)).close();
}

try {
  await migrateDatabase();
  console.log(`the database has the ${countText(migrations.length, "migration")} of this release`);
  process.exit(0);
} catch (error) {
  console.error(
    `the database was not migrated: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exit(1);
}
