import { providerDefinitions } from "../../providers/index.ts";
import type { ConfiguredPricing } from "../configured/configured-provider.ts";
import { configurationVersion, configuredPriceRow, priceVersion } from "../fact-model.ts";
import type { CatalogModel, Provider } from "../model.ts";
import { readVendorId } from "./vendor-names.ts";

/**
 * The most models that are kept, so that a repeated request finds the same object; beyond that the
 * oldest are created again.
 */
const keptMax = 500;

/**
 * Models that the catalog does not know, passed on to their owner's provider at one price that the
 * operator sets. Nothing is known of them: no window, no parameters.
 */
export class UnknownModels {
  private readonly providers: ReadonlyMap<string, Provider>;
  private readonly pricing: ConfiguredPricing;
  private readonly known = new Map<string, CatalogModel>();

  constructor({
    providers,
    pricing,
  }: { providers: ReadonlyMap<string, Provider>; pricing: ConfiguredPricing }) {
    this.providers = providers;
    this.pricing = pricing;
  }

  /**
   * Returns the model of an id at its owner; undefined where the owner is unknown, or serves no
   * models itself.
   */
  find(written: string): CatalogModel | undefined {
    // Owners write their ids in lower case.
    const id = written.toLowerCase();
    const kept = this.known.get(id);
    if (kept !== undefined) return kept;
    const model = this.make(id);
    if (model === undefined) return undefined;
    const [oldest] = this.known.keys();
    if (oldest !== undefined && this.known.size >= keptMax) this.known.delete(oldest);
    this.known.set(id, model);
    return model;
  }

  private make(id: string): CatalogModel | undefined {
    const read = readVendorId(id);
    const definition =
      read && providerDefinitions.find(({ naming }) => naming.maker === read.maker);
    const provider = definition && this.providers.get(definition.id);
    if (read === undefined || provider?.dialects.chat === undefined) return undefined;
    const catalogId = `${read.maker}/${read.wireName}`;
    const version = priceVersion(provider.id, catalogId, configurationVersion(this.pricing));
    return {
      id: catalogId,
      displayName: read.wireName,
      owner: read.maker,
      surface: "chat",
      category: "text",
      contextLength: 0,
      capabilities: ["chat"],
      addedAtMs: 0,
      routes: [
        {
          provider,
          upstreamModel: read.wireName,
          price: configuredPriceRow(version, this.pricing),
        },
      ],
    };
  }
}
