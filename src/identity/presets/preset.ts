import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  editScanned,
  type MemberEdits,
  scanMembers,
  isObject,
  type JsonFields,
  memberText,
} from "../../platform/kernel/json/json-members.ts";
import type { PresetSettings } from "../../platform/kernel/models/preset-settings.ts";

/**
 * The settings of a preset, by the names of the contract ("PresetConfig"). Every field may be
 * absent; none is null.
 */
export interface PresetConfig extends PresetSettings {
  model?: string;
  models?: readonly string[];
  /** Put before the conversation of requests that have no system message. */
  system?: string;
  provider?: JsonFields;
  require_params?: readonly string[];
  /** Tokens. */
  min_context?: number;
  /** Of pictures. */
  size?: string;
  quality?: string;
  background?: string;
  /** Of pictures, speech and transcripts, such as `webp`, `mp3` or `srt`. */
  format?: string;
  /** Of speech and transcripts. */
  voice?: string;
  instructions?: string;
  language?: string;
  speed?: number;
}

/** A named bundle of request settings, shared by the keys of one workspace. */
export interface Preset {
  /** A `prs_` id. */
  id: string;
  workspaceId: string;
  /** Unique within its workspace; never changes. */
  slug: string;
  name: string;
  description: string | null;
  config: PresetConfig;
  /** Starts at 1; each change increments it. */
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
}

/** A preset as it was between two changes. */
export interface PresetVersion extends Pick<Preset, "version" | "name" | "description" | "config"> {
  /**
   * The id of the user or management key that created the version; null for versions from before
   * authors were recorded.
   */
  author: string | null;
  createdAtMs: number;
}

/**
 * The fields of a preset that may be changed. Absent fields stay; a null description is cleared.
 */
export interface PresetChanges {
  name?: string;
  description?: string | null;
  /** Merged field by field at the first level; null removes a field. */
  config?: { [Field in keyof PresetConfig]: PresetConfig[Field] | null };
}

/** Returns a configuration with some of its fields replaced, and those that are null removed. */
export function mergeConfig(
  config: PresetConfig,
  changes: NonNullable<PresetChanges["config"]>,
): PresetConfig {
  const merged = Object.entries({ ...config, ...changes }).filter(
    ([, value]) => value !== null && value !== undefined,
  );
  return Object.fromEntries(merged) as PresetConfig;
}

/** Builds the refusal of a slug that the workspace does not have. */
export const noPreset = (slug: string, param?: string): GatewayError =>
  new GatewayError(
    "not_found",
    `There is no preset ${JSON.stringify(slug)} in this workspace. GET /presets lists them.`,
    {
      ...(param === undefined ? {} : { param }),
    },
  );

/** A preset that `model` names. */
interface PresetNamed {
  slug: string;
  /**
   * The suffix shortcuts behind the slug, such as `:floor` or `[500k]`; empty where there are none.
   */
  suffix: string;
}

const reference = /^@preset\/([^:[\s]+)(.*)$/s;

/**
 * Returns the preset that a request's `model` names (contract: `@preset/<slug>`); undefined where
 * it names a model.
 */
export function presetReference(model: unknown): PresetNamed | undefined {
  if (typeof model !== "string" || !model.startsWith("@preset/")) return undefined;
  const [, slug, suffix = ""] = reference.exec(model) ?? [];
  return slug === undefined
    ? { slug: model.slice("@preset/".length), suffix: "" }
    : { slug, suffix };
}

/** Matches suffixes that sort. A model has at most one. */
const sortSuffix = /:(?:nitro|floor|fast|exacto)$/i;

/**
 * Returns a model id with the request's suffix, which replaces the id's own where both would sort.
 */
const withSuffix = (model: string, suffix: string): string =>
  suffix.startsWith(":") ? model.replace(sortSuffix, "") + suffix : model + suffix;

/** Writes the settings of a preset in the dialect of a request. Inference implements it. */
interface PresetWriter {
  /** Returns the members that the settings add to a request which does not set them itself. */
  settings(config: PresetConfig, body: JsonFields): JsonFields;
  /** Returns whether the request has a system message. */
  hasSystem(body: JsonFields): boolean;
  /**
   * Returns the member that carries `system`, as JSON text. `textOf` returns a member's original
   * text.
   */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** A request as it was received, whose `model` may name a preset. */
interface PresetRequest {
  presetFields: PresetWriter;
  /** The body as JSON text. */
  text: string;
  /** The parsed body. */
  body: JsonFields;
  /**
   * Resolves a provider's name to its id, so that a slug and a display name match in `only`. By
   * default the name in lower case.
   */
  providerIdOf?: ProviderIdOf;
}

const lowerCase: ProviderIdOf = (name) => name.toLowerCase();

/**
 * Returns the model that a request is for: the preset's own, or else the first of the fallbacks.
 * Throws `bad_request`.
 */
function modelOf({ slug, config }: Preset, { model, models }: JsonFields): string {
  const first =
    config.model ??
    (Array.isArray(models) ? (models[0] as unknown) : undefined) ??
    config.models?.[0];
  if (typeof first === "string") return withSuffix(first, presetReference(model)?.suffix ?? "");
  const message = `The preset ${JSON.stringify(slug)} names no model. Set config.model with PATCH /presets/${slug}, or send models.`;
  throw new GatewayError("bad_request", message, { param: "model" });
}

/** Returns the members that all dialects share, as far as the preset changes them. */
function sharedMembers(
  preset: Preset,
  { body, providerIdOf = lowerCase }: PresetRequest,
): JsonFields {
  const { config } = preset;
  const provider = mergeRouting(config, body["provider"], providerIdOf);
  return {
    model: modelOf(preset, body),
    ...(config.models === undefined || !isAbsent(body["models"]) ? {} : { models: config.models }),
    ...(provider === undefined ? {} : { provider }),
  };
}

/**
 * Returns what a preset changes in a request that names it: top-level members with the JSON text of
 * their new values. The request's own values win, field by field; null means absent. Pure. Throws
 * `bad_request` where neither has a model.
 */
export function applyPreset(preset: Preset, request: PresetRequest): MemberEdits {
  const { body, presetFields } = request;
  const edits = new Map<string, string | undefined>();
  const members = {
    ...sharedMembers(preset, request),
    ...presetFields.settings(preset.config, body),
  };
  for (const [member, value] of Object.entries(members)) edits.set(member, JSON.stringify(value));
  const { system } = preset.config;
  if (system !== undefined && system !== "" && !presetFields.hasSystem(body)) {
    const written = presetFields.systemMember(system, (member) => memberText(request.text, member));
    if (written !== undefined) edits.set(written.member, written.text);
  }
  return edits;
}

/**
 * Returns a request with the preset that its `model` names applied; the same request where it names
 * none. The bytes of members that the preset does not change stay as they were. Throws `not_found`
 * for a slug that the workspace lacks.
 */
export function usePreset(
  presets: { resolvePreset(workspaceId: string, slug: string): Preset | undefined },
  request: PresetRequest & { workspaceId: string },
): { text: string; body: JsonFields; preset?: Preset } {
  const { workspaceId, text, body } = request;
  const named = presetReference(body["model"]);
  if (named === undefined) return { text, body };
  const preset = presets.resolvePreset(workspaceId, named.slug);
  if (preset === undefined) throw noPreset(named.slug, "model");
  const edits = applyPreset(preset, request);
  const changed = [...edits].map(([member, value]): [string, unknown] => [
    member,
    value === undefined ? undefined : JSON.parse(value),
  ]);
  return {
    text: editScanned(text, scanMembers(text), edits),
    body: { ...body, ...Object.fromEntries(changed) },
    preset,
  };
}

/** Returns whether a value is absent. Null means absent, as everywhere in requests. */
const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

/** Returns a plain object; undefined for anything else. */
const asFields = (value: unknown): JsonFields | undefined => (isObject(value) ? value : undefined);

const asNames = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((entry) => typeof entry === "string")
    ? (value as string[])
    : undefined;

const present = (fields: JsonFields): JsonFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isAbsent(value)));

/** Resolves a name to an id, such as the slug. Names with the same id mean one provider. */
type ProviderIdOf = (name: string) => string;

/** Says how the lists of two `provider` objects are merged, with the request's entries first. */
function mergeLists(
  own: readonly string[],
  preset: readonly string[],
  { idOf, keeps }: { idOf: ProviderIdOf; keeps: "either" | "both" },
): string[] {
  const presetIds = new Set(preset.map(idOf));
  if (keeps === "both") return own.filter((name) => presetIds.has(idOf(name)));
  const ownIds = new Set(own.map(idOf));
  return [...own, ...preset.filter((name) => !ownIds.has(idOf(name)))];
}

const sameText: ProviderIdOf = (name) => name;

/**
 * Merges the `provider` objects of a request and its preset (contract: reasoning rule 5): `order`,
 * `ignore` and `require_params` are joined, `only` lists intersect, the higher `min_context`
 * counts, and `zdr` applies if either requests it. In every other field the request's own value
 * wins. Undefined where the preset says nothing about routing. Values of a wrong type are left for
 * the check of requests.
 */
export function mergeRouting(
  config: PresetConfig,
  own: unknown,
  idOf: ProviderIdOf,
): JsonFields | undefined {
  const preset: JsonFields = {
    ...config.provider,
    ...withUnion(config.provider?.["require_params"], config.require_params),
    ...withHigher(config.provider?.["min_context"], config.min_context),
  };
  if (Object.keys(preset).length === 0) return undefined;
  if (isAbsent(own)) return preset;
  const request = asFields(own);
  if (request === undefined) return undefined;
  const merged: Record<string, unknown> = { ...preset, ...present(request) };
  for (const [field, keeps] of [
    ["order", "either"],
    ["ignore", "either"],
    ["only", "both"],
    ["require_params", "either"],
  ] as const) {
    const [ours, theirs] = [asNames(request[field]), asNames(preset[field])];
    if (ours === undefined || theirs === undefined) continue;
    merged[field] = mergeLists(ours, theirs, {
      idOf: field === "require_params" ? sameText : idOf,
      keeps,
    });
  }
  Object.assign(merged, withHigher(merged["min_context"], preset["min_context"]));
  if (preset["zdr"] === true && typeof request["zdr"] === "boolean") merged["zdr"] = true;
  return merged;
}

function withUnion(
  first: unknown,
  second: readonly string[] | undefined,
): { require_params?: string[] } {
  const names = [...(asNames(first) ?? []), ...(second ?? [])];
  return names.length === 0 ? {} : { require_params: [...new Set(names)] };
}

function withHigher(first: unknown, second: unknown): { min_context?: number } {
  if (typeof second !== "number") return {};
  if (isAbsent(first)) return { min_context: second };
  return typeof first === "number" ? { min_context: Math.max(first, second) } : {};
}
