import { GatewayError } from "../../platform/kernel/errors.ts";

/** A JSON object whose fields were checked where it came in. */
export type JsonFields = Readonly<Record<string, unknown>>;

/**
 * What a preset sets, by the names of the contract ("PresetConfig"); every field may be absent,
 * none is null.
 */
export interface PresetConfig {
  model?: string;
  models?: readonly string[];
  /** Put before the conversation of requests that have no system message. */
  system?: string;
  temperature?: number;
  max_tokens?: number;
  max_completion_tokens?: number;
  top_p?: number;
  top_k?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
  stop?: string | readonly string[];
  seed?: number;
  response_format?: JsonFields;
  /** As chat spells them. */
  tools?: readonly JsonFields[];
  tool_choice?: string | JsonFields;
  provider?: JsonFields;
  reasoning?: { effort?: string; max_tokens?: number; exclude?: boolean; enabled?: boolean };
  stream_options?: JsonFields;
  require_params?: readonly string[];
  /** Tokens. */
  min_context?: number;
}

/** A named bundle of request settings, shared by the keys of one workspace. */
export interface Preset {
  /** `prs_` id. */
  id: string;
  workspaceId: string;
  /** Unique within its workspace; never changes. */
  slug: string;
  name: string;
  description: string | null;
  config: PresetConfig;
  /** Begins with 1; each change makes the next one. */
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** A preset as it was from one change to the next. */
export interface PresetVersion extends Pick<Preset, "version" | "name" | "description" | "config"> {
  /**
   * Id of the user or management key that made the version; null where that was before versions
   * were kept.
   */
  author: string | null;
  createdAtMs: number;
}

/** What may be changed of a preset; absent fields stay, a null description is cleared. */
export interface PresetChanges {
  name?: string;
  description?: string | null;
  /** Merged field by field at the first level; null takes a field out. */
  config?: { [Field in keyof PresetConfig]: PresetConfig[Field] | null };
}

/** A configuration with some of its fields replaced, and those that are null taken out. */
export function mergeConfig(
  config: PresetConfig,
  changes: NonNullable<PresetChanges["config"]>,
): PresetConfig {
  const merged = Object.entries({ ...config, ...changes }).filter(
    ([, value]) => value !== null && value !== undefined,
  );
  return Object.fromEntries(merged) as PresetConfig;
}

/** The refusal for a slug that the workspace does not have. */
export const noPreset = (slug: string, param?: string): GatewayError =>
  new GatewayError(
    "not_found",
    `There is no preset ${JSON.stringify(slug)} in this workspace. GET /presets lists them.`,
    {
      ...(param === undefined ? {} : { param }),
    },
  );

/** What `model` says where it names a preset. */
interface PresetNamed {
  slug: string;
  /** Suffix shortcuts behind the slug, such as `:floor` or `[500k]`; empty where there is none. */
  suffix: string;
}

const reference = /^@preset\/([^:[\s]+)(.*)$/s;

/**
 * The preset that a request's `model` names (contract: `@preset/<slug>`); undefined where it names
 * a model.
 */
export function presetReference(model: unknown): PresetNamed | undefined {
  if (typeof model !== "string" || !model.startsWith("@preset/")) return undefined;
  const [, slug, suffix = ""] = reference.exec(model) ?? [];
  return slug === undefined
    ? { slug: model.slice("@preset/".length), suffix: "" }
    : { slug, suffix };
}

/** Suffixes that sort; a model has one at most. */
const sortSuffix = /:(?:nitro|floor|fast|exacto)$/i;

/**
 * A model id with a suffix of the request, which takes the place of the id's own where both would
 * sort.
 */
export const withSuffix = (model: string, suffix: string): string =>
  suffix.startsWith(":") ? model.replace(sortSuffix, "") + suffix : model + suffix;
