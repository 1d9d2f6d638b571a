import type { Provider } from "./model.ts";
import { providerLogoPath } from "./provider-logo.ts";
import { present } from "./present.ts";
import { isPlatformServed } from "./reachability.ts";

/** A provider as `GET /providers` shows it. */
export interface ProviderEntry {
  id: string;
  name: string;
  description: string;
  logo: string;
  /** The id again, where OpenRouter's clients look for it. */
  slug: string;
  /** Null: the catalog does not know the pages of vendors. */
  privacy_policy_url: null;
  terms_of_service_url: null;
  status_page_url: null;
  website?: string;
  /** `active`: the platform's own credential serves everybody; `byok`: only callers with a key of their own are served. */
  status: "active" | "byok";
  model_count: number;
  /** Surfaces that the provider offers. */
  endpoints: string[];
}

/** How many characters a description has at most (contract). */
const descriptionLengthMax = 200;

/** A provider in the contract's shape, with how many models of the catalog it serves. */
export const providerEntry = (provider: Provider, modelCount: number): ProviderEntry =>
  present({
    id: provider.id,
    name: provider.name,
    description: (provider.description ?? `Models served by ${provider.name}.`).slice(
      0,
      descriptionLengthMax,
    ),
    logo: providerLogoPath(provider.id),
    slug: provider.id,
    privacy_policy_url: null,
    terms_of_service_url: null,
    status_page_url: null,
    website: provider.website,
    status: isPlatformServed(provider) ? ("active" as const) : ("byok" as const),
    model_count: modelCount,
    endpoints: Object.keys(provider.dialects),
  });
