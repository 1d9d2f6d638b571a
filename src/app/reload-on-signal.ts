import type { App } from "./app.ts";
import type { CatalogSources } from "./live-catalog.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import type { Logger } from "../platform/telemetry/logger.ts";

/**
 * Refreshes the catalog on SIGHUP from what the configuration says by then; one that cannot be used changes nothing.
 * Where there is a terminal, SIGHUP goes on to mean that it is gone, and ends the process.
 */
export function reloadOnSignal(
  app: Pick<App, "refreshCatalog">,
  {
    readSources,
    hasTerminal,
    logger,
  }: { readSources(): Promise<CatalogSources>; hasTerminal: boolean; logger: Logger },
): void {
  if (hasTerminal) return;
  const reload = async (): Promise<void> => {
    try {
      const { added, removed, repriced } = app.refreshCatalog(await readSources());
      logger.info(
        { added: added.length, removed: removed.length, repriced: repriced.length },
        "the catalog was replaced",
      );
    } catch (error) {
      const what =
        error instanceof ConfigurationError ? { problems: error.toString() } : { err: error };
      logger.error(what, "the catalog stays as it was, since what was read cannot be used");
    }
  };
  // One after the other: what was read last is what stays.
  let reloaded = Promise.resolve();
  process.on("SIGHUP", () => void (reloaded = reloaded.then(reload)));
}
