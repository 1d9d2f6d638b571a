import { providerDefinitions } from "../providers/index.ts";
import type { ConfiguredPricing } from "./configured-provider.ts";
import type { CatalogModel, Provider } from "./model.ts";
import { configurationVersion, configuredPriceRow, priceVersion } from "./price-rows.ts";
import { readVendorId } from "./vendor-names.ts";

/** Models that are kept so that a request for one again finds the same object; beyond that the oldest are made again. */
const keptMax = 500;

/**
 * Models that the catalog does not know, passed through to their maker's own provider at one price of the operator's.
 * Nothing is known of them: no window, no parameters.
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

  /** The model that an id means to its maker; undefined where the maker is not told, or serves no models itself. */
  find(written: string): CatalogModel | undefined {
    // Makers write their ids in lower case.
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
