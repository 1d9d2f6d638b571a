import { ZodError, z } from "zod";
import {
  buildCatalog,
  buildProviders,
  compareCatalogs,
  type CatalogOptions,
  type CatalogChange,
} from "../inference/catalog/build-catalog.ts";
import {
  readBundledFacts,
  readFacts,
  type CatalogFacts,
} from "../inference/catalog/catalog-facts.ts";
import type {
  ConfiguredPricing,
  ConfiguredProvider,
} from "../inference/catalog/configured/configured-provider.ts";
import { hasPlatformCredential, type CatalogSnapshot } from "../inference/catalog/model.ts";
import type { ConfiguredRouters } from "../inference/catalog/router-models.ts";
import { sandboxProvider } from "../inference/sandbox/sandbox-models.ts";
import { startSandbox, type Sandbox } from "../inference/sandbox/sandbox.ts";
import type { AliasTarget } from "../platform/kernel/models/model-alias.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import type { Clock } from "../platform/kernel/clock.ts";

/** The operator's statements about models, which are read again on every refresh. */
export interface CatalogSources {
  providers: readonly ConfiguredProvider[];
  /**
   * The pools of routing presets, by preset id. Presets without one choose from the reachable
   * models.
   */
  routers?: ConfiguredRouters;
  /** The operator's own names of models. */
  aliases?: Readonly<Record<string, AliasTarget>>;
  /** Variables with vendors' credentials and addresses; absent keeps the previous environment. */
  environment?: Readonly<Record<string, string | undefined>>;
  /** A facts file in place of the one that ships with the project. */
  factsPath?: string | undefined;
  /** Whether only those models are offered that the providers list. */
  onlyListed?: boolean | undefined;
  /** The price of models that no catalog knows; undefined refuses them. */
  unknownModelPricing?: ConfiguredPricing | undefined;
}

/**
 * The catalog of a running gateway. A refresh builds the next snapshot beside the current one and
 * then replaces it: requests in progress keep the routes and prices that they were planned with.
 */
export class LiveCatalog {
  private current: CatalogSnapshot;
  private simulator: Sandbox | undefined;

  /** Throws `ConfigurationError` where the facts cannot be read. */
  constructor(
    private readonly options: Pick<CatalogOptions, "environment"> & {
      sandbox: boolean | "auto";
      clock: Clock;
    },
    sources: CatalogSources,
  ) {
    this.current = this.build(sources, undefined);
  }

  /** Returns the current snapshot. */
  readonly snapshot = (): CatalogSnapshot => this.current;

  /** The simulated provider; undefined where it was never needed. */
  get sandbox(): Sandbox | undefined {
    return this.simulator;
  }

  /**
   * Replaces the whole snapshot and returns what changed. Throws `ConfigurationError`, and then the
   * old one stays.
   */
  refresh(sources: CatalogSources): CatalogChange {
    const previous = this.current;
    const next = this.build(sources, previous);
    this.current = next;
    return compareCatalogs(previous, next);
  }

  /** Stops the simulated provider. */
  async stop(): Promise<void> {
    await this.simulator?.stop();
  }

  private build(sources: CatalogSources, previous: CatalogSnapshot | undefined): CatalogSnapshot {
    const { providers, routers, aliases, factsPath, onlyListed, unknownModelPricing } = sources;
    const { sandbox, clock } = this.options;
    const environment = sources.environment ?? this.options.environment;
    const options: CatalogOptions = {
      environment,
      configuredProviders: providers,
      configuredRouters: routers ?? {},
      configuredAliases: aliases ?? {},
      nowMs: clock.nowMs(),
      facts: factsOf(factsPath),
      onlyListed: onlyListed === true,
      unknownModelPricing,
      ...(previous !== undefined && { previous }),
    };
    const isSimulated =
      sandbox === "auto" ? !hasPlatformCredential({ providers: buildProviders(options) }) : sandbox;
    if (!isSimulated) return buildCatalog(options);
    this.simulator ??= startSandbox({ clock });
    return buildCatalog({ ...options, simulatedProvider: sandboxProvider(this.simulator.baseUrl) });
  }
}

function factsOf(path: string | undefined): CatalogFacts {
  if (path === undefined) return readBundledFacts();
  try {
    return readFacts(path);
  } catch (error) {
    const reason =
      error instanceof ZodError
        ? z.prettifyError(error)
        : error instanceof Error
          ? error.message
          : String(error);
    throw new ConfigurationError([{ key: "catalog.facts", message: `cannot be used: ${reason}` }]);
  }
}
