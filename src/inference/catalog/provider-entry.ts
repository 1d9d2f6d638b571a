import { isPlatformServed, type Provider } from "./model.ts";
import { present } from "./present.ts";

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
  /**
   * `active`: the platform's own credential serves every caller; `byok`: only callers with a key of
   * their own are served.
   */
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

/** Root-relative path of a provider's logo. */
export const providerLogoPath = (providerId: string): string => `/logos/${providerId}.svg`;

/**
 * A monogram in place of the vendor's trade mark, which is not ours to ship: its initials on a
 * colour of its own. Safe to serve as it is, since every character of the name is escaped.
 */
export function providerLogoSvg({ id, name }: Pick<Provider, "id" | "name">): string {
  const hue = [...id].reduce(
    (sum, character) => (sum * 31 + (character.codePointAt(0) ?? 0)) % 360,
    7,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img" aria-label="${escapeXml(name)}">`,
    `<rect width="64" height="64" rx="14" fill="hsl(${hue} 45% 36%)"/>`,
    '<text x="32" y="41" text-anchor="middle" font-family="system-ui, sans-serif" font-size="26"',
    ` font-weight="600" fill="#fff">${escapeXml(initials(name))}</text></svg>`,
  ].join("");
}

function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const letters =
    words.length > 1 ? words.slice(0, 2).map((word) => word[0]) : [words[0]?.slice(0, 2)];
  return letters.join("").toUpperCase();
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

const escapeXml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? "");
