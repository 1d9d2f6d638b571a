import { createHmac } from "node:crypto";
import { hostname } from "node:os";
import type { Kysely } from "kysely";
import type { GatewayNode } from "../endpoints/dependencies.ts";
import type { CatalogChange } from "../inference/catalog/build-catalog.ts";
import type { CatalogModel } from "../inference/catalog/model.ts";
import { memberWarnings } from "../inference/catalog/router-models.ts";
import { nameWarnings } from "../inference/routing/resolve-models.ts";
import type { ConfigurationWarning } from "../platform/config/configuration-warnings.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { GatewayTables } from "../platform/storage/database-epoch.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Accepted, OperatorEntries } from "../operator/operator-entries.ts";
import { GatewayNodes, type NodeAbout, type NodeTables } from "./gateway-nodes.ts";
import type { CatalogSources, LiveCatalog } from "./live-catalog.ts";
import { type Shared, hasSeveralGateways } from "./open-shared.ts";
import type { AppSettings, ReadConfiguration } from "./settings-of.ts";

/** The outcome of reloading the configuration. */
interface Reloaded {
  change: CatalogChange;
  /** Sections that have changed and take effect with the next start. */
  needsRestart: readonly string[];
  configuration: string;
}

/** Reloads this gateway's configuration, and describes it. */
class Reload {
  private readonly catalog: LiveCatalog;
  private readonly atStart: ReadConfiguration;
  private readonly readAgain: () => Promise<ReadConfiguration>;
  private readonly layer: (sources: CatalogSources) => Promise<Accepted<CatalogSources>>;
  private readonly key: Uint8Array;
  private readonly logger: Logger;
  private read: ReadConfiguration;
  private hash = "";
  private lastProblem: string | null = null;
  /**
   * The last reload. They run one after another, so that the last configuration read is the one
   * that stays.
   */
  private last: Promise<unknown> = Promise.resolve();

  constructor(options: {
    catalog: LiveCatalog;
    read: ReadConfiguration;
    readAgain(): Promise<ReadConfiguration>;
    /** Layers what operators configure in the page over what was read. */
    layer(sources: CatalogSources): Promise<Accepted<CatalogSources>>;
    /** The key of the hash, which therefore reveals nothing of secrets. */
    key: Uint8Array;
    logger: Logger;
  }) {
    this.catalog = options.catalog;
    this.atStart = options.read;
    this.read = options.read;
    this.readAgain = options.readAgain;
    this.layer = options.layer;
    this.key = options.key;
    this.logger = options.logger;
    this.hash = this.hashOfAll();
    this.warn();
  }

  /** A short hash of everything that gateways on one database should have in common. */
  get configuration(): string {
    return this.hash;
  }

  /** The reason why the last reload failed; null where it succeeded. */
  get problem(): string | null {
    return this.lastProblem;
  }

  /**
   * Replaces the catalog. Rejects with `ConfigurationError`, and then everything stays as it was.
   */
  run(): Promise<Reloaded> {
    const run = this.last.then(() => this.once());
    this.last = run.catch(() => undefined);
    return run;
  }

  /** The sections that have changed since the start. */
  get needsRestart(): readonly string[] {
    const { sections } = this.atStart;
    const names = new Set([...Object.keys(sections), ...Object.keys(this.read.sections)]);
    return [...names].filter((name) => sections[name] !== this.read.sections[name]).sort();
  }

  /** Logs one line for each setting that is probably not what was meant. */
  private warn(): void {
    const warnings: ConfigurationWarning[] = [
      ...this.read.warnings,
      ...memberWarnings(this.catalog.snapshot()),
      ...nameWarnings(this.catalog.snapshot()),
    ];
    for (const { key, message, file, line } of warnings)
      this.logger.warn(
        { setting: key, ...(file !== undefined && { file, line }) },
        `${key}: ${message}`,
      );
  }

  private hashOfAll(): string {
    const { sections, alike, sources } = this.read;
    const { providers, models } = this.catalog.snapshot();
    const credentials = [...providers.values()]
      .filter(({ simulated }) => simulated !== true)
      .map(({ id, baseUrl, apiKey }) => [id, baseUrl, apiKey]);
    const text = JSON.stringify([
      alike.map((name) => sections[name]),
      [sources.providers, sources.routers, sources.aliases, sources.unknownModelPricing],
      sources.onlyListed,
      credentials,
      // The facts that ship with a release differ while gateways are replaced by the next one.
      sources.factsPath === undefined ? [] : [...models.values()].map(pricesOf),
    ]);
    return createHmac("sha256", this.key).update(text).digest("hex").slice(0, 16);
  }

  private async once(): Promise<Reloaded> {
    try {
      const { accept, ...again } = await this.readAgain();
      const layered = await this.layer(again.sources);
      const change = this.catalog.refresh(layered.sources);
      layered.accept();
      accept?.();
      this.read = { ...again, sources: layered.sources };
      this.hash = this.hashOfAll();
      this.lastProblem = null;
      this.warn();
      const { needsRestart, configuration } = this;
      this.logger.info(
        {
          added: change.added.length,
          removed: change.removed.length,
          repriced: change.repriced.length,
          needs_restart: needsRestart,
        },
        "the catalog was replaced",
      );
      return { change, needsRestart, configuration };
    } catch (error) {
      this.lastProblem = error instanceof Error ? error.message : String(error);
      const what =
        error instanceof ConfigurationError ? { problems: error.toString() } : { err: error };
      this.logger.error(
        what,
        "the catalog stays as it was, since the new configuration or facts cannot be used",
      );
      throw error;
    }
  }
}

const pricesOf = ({ id, routes }: CatalogModel): unknown[] => [
  id,
  ...routes.map(({ price }) => price?.version),
];

/** The gateways on the database, all of which are reloaded through this one. */
export interface Nodes {
  /** Reloads this gateway's configuration, and makes the others reload theirs. */
  reload(): Promise<Reloaded>;
  list(): Promise<readonly GatewayNode[]>;
  /** Returns the number of different configurations among them, as far as this one knows. */
  configurations(): number;
  stop(): Promise<void>;
}

/** Returns the configuration of a gateway that reads none. */
const withoutFile = (sources: CatalogSources): ReadConfiguration => ({
  ...{ sources, sections: {}, alike: [], warnings: [] },
});

/** Joins the gateways on the database. A gateway that is alone has only its own configuration. */
export async function joinNodes(
  settings: AppSettings,
  {
    shared,
    catalog,
    entries,
    database,
    clock,
    logger,
  }: {
    shared: Shared | undefined;
    catalog: LiveCatalog;
    entries: OperatorEntries;
    database: Kysely<NodeTables & GatewayTables>;
    clock: Clock;
    logger: Logger;
  },
): Promise<Nodes> {
  const { version, encryptionKey: key, configuration } = settings;
  const ofFile = configuration?.read ?? withoutFile(settings);
  const layer = (sources: CatalogSources): Promise<Accepted<CatalogSources>> =>
    entries.over(sources);
  const read = { ...ofFile, sources: (await layer(ofFile.sources)).sources };
  const readAgain = configuration?.readAgain ?? (async () => ofFile);
  const reload = new Reload({ catalog, read, readAgain, layer, key, logger });
  const startedAt = new Date(clock.nowMs()).toISOString();
  const about = (): NodeAbout => ({
    name: settings.nodeName ?? hostname(),
    version,
    startedAt,
    configuration: reload.configuration,
    needsRestart: reload.needsRestart,
    problem: reload.problem,
  });
  if (shared === undefined || !hasSeveralGateways(settings)) {
    return {
      reload: () => reload.run(),
      list: async () => [{ id: shared?.nodeId ?? "this", ...about() }],
      configurations: () => 1,
      stop: async () => undefined,
    };
  }
  const { nodeId, channel } = shared;
  const reloadHere = (): Promise<Reloaded> => reload.run().finally(() => nodes.report());
  const nodes = new GatewayNodes({
    database,
    channel,
    nodeId,
    about,
    onReload: () => void reloadHere().catch(() => undefined),
    onDifference: (all) =>
      logger.warn(
        { nodes: all.map(({ name, id, configuration: hash }) => ({ name, id, hash })) },
        "gateways on this database are configured differently; GET /admin/overview shows which",
      ),
    onError: (error) =>
      logger.warn({ err: error }, "this gateway's configuration could not be reported yet"),
  });
  await nodes.start();
  return {
    async reload() {
      const reloaded = await reloadHere();
      await nodes.reloadOthers();
      return reloaded;
    },
    list: () => nodes.list(),
    configurations: () => nodes.configurations,
    stop: () => nodes.stop(),
  };
}
