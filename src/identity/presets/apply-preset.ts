import { GatewayError } from "../../platform/kernel/errors.ts";
import { editScanned, scanMembers, type MemberEdits } from "../../platform/kernel/json-members.ts";
import { isAbsent, mergeRouting, type ProviderIdOf } from "./merge-routing.ts";
import type { PresetDirectory } from "./preset-store.ts";
import {
  noPreset,
  presetReference,
  withSuffix,
  type JsonFields,
  type Preset,
  type PresetConfig,
} from "./preset.ts";

/** How the settings of a preset are written in the dialect of a request, which inference knows. */
interface PresetWriter {
  /** The members that the settings give a request which has not set them itself. */
  settings(config: PresetConfig, body: JsonFields): JsonFields;
  /** Whether the request brings a system message. */
  hasSystem(body: JsonFields): boolean;
  /** The member that says `system`, as JSON text; `textOf` gives a member's own text. */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** A request as it came, whose `model` may name a preset. */
export interface PresetRequest {
  presetFields: PresetWriter;
  /** JSON text of the body. */
  text: string;
  /** The same, parsed. */
  body: JsonFields;
  /**
   * Resolves a provider's name to its id, so that a slug and a display name match in `only`; lower
   * case by default.
   */
  providerIdOf?: ProviderIdOf;
}

const lowerCase: ProviderIdOf = (name) => name.toLowerCase();

/**
 * The model that a request is for: the preset's own, else the first of the fallbacks. Throws
 * `bad_request`.
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

/** Members of every dialect, with those that the preset changes. */
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
 * What a preset changes of a request that names it: top-level members with the JSON text of their
 * new values. The request's own values win, field by field; null means absent. Pure. Throws
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
 * The text of a member's value; of several members of one name the last counts, as it does for
 * `JSON.parse`.
 */
function memberText(text: string, name: string): string | undefined {
  const member = scanMembers(text).findLast(({ key }) => key === name);
  return member && text.slice(member.valueStart, member.valueEnd);
}

/**
 * A request with the preset that its `model` names; the same request where it names none. Bytes of
 * members that the preset leaves alone stay as they were. Throws `not_found` for a slug that the
 * workspace lacks.
 */
export function usePreset(
  presets: Pick<PresetDirectory, "resolvePreset">,
  { workspaceId, ...request }: PresetRequest & { workspaceId: string },
): { text: string; body: JsonFields; preset?: Preset } {
  const { text, body } = request;
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
