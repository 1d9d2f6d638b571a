import { brand } from "../../platform/kernel/brand.ts";

/** Kinds of concepts. */
export const conceptTypes = ["model", "provider", "endpoint", "error", "term"] as const;

/**
 * A document of the Open Knowledge Format: Markdown behind YAML front matter, in which `type` is
 * required.
 */
export interface Concept {
  /** Type and name, such as `error/insufficient_balance`. */
  id: string;
  type: (typeof conceptTypes)[number];
  title: string;
  description: string;
  /** Further facts for the front matter. */
  facts: Readonly<Record<string, unknown>>;
  /** Markdown. */
  body: string;
}

/**
 * A concept as it is sent. Values of the front matter are written as JSON, which YAML 1.2 contains.
 */
export function conceptDocument({ id, type, title, description, facts, body }: Concept): string {
  const front = Object.entries({
    type,
    id,
    title,
    description,
    source: brand.productName,
    ...facts,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return ["---", ...front, "---", "", `# ${title}`, "", body, ""].join("\n");
}
