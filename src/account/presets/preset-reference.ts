/** What `model` says where it names a preset. */
export interface PresetNamed {
  slug: string;
  /** Suffix shortcuts behind the slug, such as `:floor` or `[500k]`; empty where there is none. */
  suffix: string;
}

const reference = /^@preset\/([^:[\s]+)(.*)$/s;

/** The preset that a request's `model` names (contract: `@preset/<slug>`); undefined where it names a model. */
export function presetReference(model: unknown): PresetNamed | undefined {
  if (typeof model !== "string" || !model.startsWith("@preset/")) return undefined;
  const [, slug, suffix = ""] = reference.exec(model) ?? [];
  return slug === undefined
    ? { slug: model.slice("@preset/".length), suffix: "" }
    : { slug, suffix };
}

/** Suffixes that sort; a model has one at most. */
const sortSuffix = /:(?:nitro|floor|fast|exacto)$/i;

/** A model id with a suffix of the request, which takes the place of the id's own where both would sort. */
export const withSuffix = (model: string, suffix: string): string =>
  suffix.startsWith(":") ? model.replace(sortSuffix, "") + suffix : model + suffix;
