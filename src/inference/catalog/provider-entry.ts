import type { Provider } from "./model.ts";
import { providerLogoPath } from "./provider-logo.ts";
import { present } from "./present.ts";

/** A provider as `GET /providers` shows it. */
export interface ProviderEntry {
  id: string;
  name: string;
  description: string;
  logo: string;
  website?: string;
  model_count: number;
  /** Surfaces that the provider offers. */
  endpoints: string[];
}

/** A provider in the contract's shape, with how many models of the catalog it serves. */
export const providerEntry = (provider: Provider, modelCount: number): ProviderEntry => present({
  id: provider.id,
  name: provider.name,
  description: (provider.description ?? `Models served by ${provider.name}.`).slice(0, 200),
  logo: providerLogoPath(provider.id),
  website: provider.website,
  model_count: modelCount,
  endpoints: Object.keys(provider.dialects),
});
