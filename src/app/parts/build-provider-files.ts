import type { Kysely } from "kysely";
import type { ProviderKeys } from "../../byok/provider-keys.ts";
import type { FileTables } from "../../files/file-store.ts";
import { ProviderCopyStore } from "../../files/provider-copy-store.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import {
  platformAccount,
  ProviderFiles,
} from "../../inference/pipeline/provider-files/provider-files.ts";
import type { UpstreamClient } from "../../inference/upstream/upstream-client.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** The size from which files are stored at providers where the settings name none. */
const bytesMinDefault = 1024 * 1024;

/** Builds the files that providers store, which requests name in place of their contents. */
export const buildProviderFiles = ({
  database,
  catalog,
  providerKeys,
  upstream,
  clock,
  logger,
  bytesMin = bytesMinDefault,
}: {
  database: Kysely<FileTables>;
  catalog(): CatalogSnapshot;
  providerKeys: ProviderKeys;
  upstream: UpstreamClient;
  clock: Clock;
  logger: Pick<Logger, "warn">;
  bytesMin: number | undefined;
}): ProviderFiles =>
  new ProviderFiles({
    copies: new ProviderCopyStore(database, clock),
    upstream,
    clock,
    bytesMin,
    providerOf({ provider: id, account, workspaceId }) {
      const provider = catalog().providers.get(id);
      if (provider === undefined || account === platformAccount) return provider;
      const key = providerKeys.own(workspaceId, { providerId: id, id: account });
      return key && { ...provider, apiKey: providerKeys.secretOf(key) };
    },
    onError: (error) =>
      logger.warn({ err: error }, "a file could not be stored or deleted at a provider"),
  });
