import type { Usage } from "../usage.ts";

/** Request fields by which a provider charges other prices for the same tokens. */
export const levelFields = ["service_tier", "speed", "inference_geo"] as const;
/** A request field that chooses a price level. */
export type LevelField = (typeof levelFields)[number];

/** The name of searches of the web among the prices of a provider's tools. */
export const searchTool = "web_search";

/** The level that a request asks for, or that an answer says it was served at, by field. */
export type Levels = Partial<Record<LevelField, string>>;

/** What a request asks a provider for beside tokens at the ordinary price. */
export interface ChargedExtras {
  levels: Levels;
  /** The names of the provider's tools that are priced by call, other than search. */
  tools: readonly string[];
  /** Whether the provider searches the web. */
  searches: boolean;
  /**
   * The searches and tool calls to charge where an answer counts none, for providers that never
   * count them.
   */
  uncounted: Pick<Usage, "searches" | "toolCalls">;
}

/** Words for the ordinary price, by field. */
const ordinary: Readonly<Record<LevelField, ReadonlySet<string>>> = {
  // `scale`, and Anthropic's `priority` in answers, are capacity that is bought in advance.
  service_tier: new Set(["auto", "default", "standard", "standard_only", "on_demand", "scale"]),
  speed: new Set(["standard", "default"]),
  inference_geo: new Set(["global", "default", "not_available"]),
};

/** Other names of levels: OpenAI calls `priority` also `fast`. Source: npm openai 7.55. */
const otherNames: Partial<Record<LevelField, Readonly<Record<string, string>>>> = {
  service_tier: { fast: "priority" },
};

/** Returns the level that a field's value names; undefined for the ordinary price. */
export function levelOf(field: LevelField, value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || ordinary[field].has(value)) return undefined;
  return otherNames[field]?.[value] ?? value;
}
