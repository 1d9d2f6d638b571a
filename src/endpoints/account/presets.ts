import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody, refuseUnknownFields } from "../../http/bodies/check-body.ts";
import { lazily } from "../../http/endpoint.ts";
import { creatorIdOf, type AccountCaller } from "../../identity/keys/caller.ts";
import { versionsMax } from "../../identity/presets/preset-store.ts";
import type { PresetReference } from "../../identity/presets/preset-editor.ts";
import {
  type Preset,
  type PresetChanges,
  type PresetConfig,
  presetReference,
  type PresetVersion,
} from "../../identity/presets/preset.ts";
import { providerPreferencesSchema } from "../../inference/routing/provider-preferences.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  nameField,
  plainText,
  forPresets,
  readsPresets,
  writesPresets,
} from "./account-fields.ts";
import { descending, pageOf, pageQuery, placeFields, timeRank } from "./list-pages.ts";
import { isObject } from "../../platform/kernel/json/json-members.ts";

const fields = z.looseObject({});
const tokens = z.int().positive();
const penalty = z.number().min(-2).max(2);
const names = z.array(z.string().min(1));
const modelId = z
  .string()
  .min(1)
  .max(256)
  .refine(
    (id) => presetReference(id) === undefined,
    "must be a model: a preset does not name another preset",
  );

/**
 * PresetConfig of the contract, by type and range. Unknown fields are ignored, as OpenRouter does
 * with presets that are created from whole requests (its reference, "Create a preset", 2026-04).
 */
const presetConfigSchema = z.object({
  model: modelId.nullish().describe("Model of requests that use the preset."),
  models: z.array(modelId).nullish().describe("Fallback models, in order."),
  system: z.string().nullish().describe("System prompt for requests that have no system message."),
  temperature: z.number().min(0).max(2).nullish(),
  max_tokens: tokens.nullish(),
  max_completion_tokens: tokens.nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  size: z.string().max(100).nullish(),
  quality: z.string().max(100).nullish(),
  background: z.string().max(100).nullish(),
  format: z
    .string()
    .max(100)
    .nullish()
    .describe("Format of pictures, speech or transcripts, such as webp, mp3 or srt."),
  voice: z.string().max(200).nullish(),
  instructions: z.string().max(8_192).nullish(),
  language: z.string().max(100).nullish(),
  speed: z.number().min(0.25).max(4).nullish(),
  top_k: z.int().nonnegative().nullish(),
  frequency_penalty: penalty.nullish(),
  presence_penalty: penalty.nullish(),
  repetition_penalty: z.number().min(0).max(2).nullish(),
  stop: z
    .union(
      [z.string(), z.array(z.string()).max(4)],
      "must be a string or an array of at most 4 strings",
    )
    .nullish(),
  seed: z.int().nullish(),
  response_format: fields.extend({ type: z.string() }).nullish(),
  tools: z
    .array(fields)
    .nullish()
    .describe("Parameters as in the chat dialect; translated for other dialects."),
  tool_choice: z.union([z.string(), fields], "must be a string or an object").nullish(),
  provider: providerPreferencesSchema.nullish().describe("Routing preferences."),
  reasoning: z
    .object({
      effort: z.string().min(1).optional(),
      max_tokens: tokens.optional(),
      exclude: z.boolean().optional(),
      enabled: z.boolean().optional(),
    })
    .nullish(),
  stream_options: fields.extend({ include_usage: z.boolean().optional() }).nullish(),
  require_params: names.nullish().describe("Former place of provider.require_params."),
  min_context: z.number().nonnegative().nullish(),
});

/** A configuration as it was received: null where a field is to be removed. */
type PresetConfigInput = z.infer<typeof presetConfigSchema>;

/** Returns the configuration with only those fields that are set. */
const presetConfigOf = (input: PresetConfigInput): PresetConfig =>
  Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== null && value !== undefined),
  ) as PresetConfig;

type Body = Readonly<Record<string, unknown>>;

const slugPattern = /^[a-z0-9][a-z0-9-]*$/;
const slugCharactersMax = 128;

const slugField = z.string().regex(slugPattern).max(slugCharactersMax);
const descriptionField = plainText(2_000).nullish();

/**
 * The body of a new preset, for documents; `readNewPreset` checks it, with the contract's codes.
 */
const newPresetSchema = z.object({
  slug: slugField,
  name: nameField,
  description: descriptionField,
  config: presetConfigSchema,
});

/** The body of a change, for documents; `readPresetChanges` checks it. */
const presetChangesSchema = z.object({
  name: nameField.optional(),
  description: descriptionField.describe("Omitted: unchanged. null: removed."),
  config: presetConfigSchema
    .optional()
    .describe("Merged field by field at the first level; null removes a field."),
});

function slugOf({ slug }: Body): string {
  if (slugField.safeParse(slug).success) return slug as string;
  const message = `slug must consist of lower-case letters, digits and dashes, no dash first, of at most ${slugCharactersMax} characters.`;
  throw new GatewayError("invalid_slug", message, { param: "slug" });
}

const emptyName = (name: unknown): boolean => typeof name !== "string" || name.trim() === "";

function configOf({ config }: Body): PresetConfigInput {
  if (!isObject(config))
    throw new GatewayError("config_required", "config is required and must be an object.", {
      param: "config",
    });
  return checkBody(z.object({ config: presetConfigSchema }), { config }).config;
}

/**
 * Reads a new preset from a body. Throws `invalid_slug`, `name_required`, `config_required` or
 * `bad_request`.
 */
function readNewPreset(body: Body): {
  slug: string;
  name: string;
  description: string | null;
  config: PresetConfig;
} {
  refuseUnknownFields(newPresetSchema, body);
  const slug = slugOf(body);
  if (emptyName(body["name"]))
    throw new GatewayError("name_required", "name is required and must not be empty.", {
      param: "name",
    });
  const { name, description } = checkBody(
    z.object({ name: nameField, description: descriptionField }),
    body,
  );
  return { slug, name, description: description ?? null, config: presetConfigOf(configOf(body)) };
}

/**
 * Reads the changes of a preset from a body. An empty name changes nothing, as the contract says
 * ("if provided and non-empty"). Throws `config_required` or `bad_request`.
 */
function readPresetChanges(body: Body, slug: string): PresetChanges {
  const { slug: named, ...changes } = body;
  refuseUnknownFields(presetChangesSchema, changes);
  if (named !== undefined && named !== slug) {
    throw new GatewayError(
      "bad_request",
      "slug cannot be changed; create another preset and delete this one.",
      { param: "slug" },
    );
  }
  const renamed =
    typeof body["name"] === "string" && emptyName(body["name"]) ? undefined : body["name"];
  const { name, description } = checkBody(
    z.object({ name: nameField.optional(), description: descriptionField }),
    { name: renamed, description: body["description"] },
  );
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(body["config"] === undefined
      ? {}
      : { config: configOf(body) as NonNullable<PresetChanges["config"]> }),
  };
}

/** The preset record of the contract. */
export const presetObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("preset"),
      slug: z.string(),
      name: z.string(),
      description: z.string().nullable(),
      config: presetConfigSchema,
      version: z.int().describe("Version number; begins at 1 and grows by one with each change."),
      created_at: z.string(),
      updated_at: z.string(),
      last_used_at: z.string().nullable(),
    })
    .meta({ id: "Preset" }),
);

/** Returns the public record of a preset. */
export const presetObject = (preset: Preset, { directory }: Pick<Dependencies, "directory">) => ({
  id: preset.id,
  object: "preset",
  slug: preset.slug,
  name: preset.name,
  description: preset.description,
  config: preset.config,
  version: preset.version,
  created_at: new Date(preset.createdAtMs).toISOString(),
  updated_at: new Date(preset.updatedAtMs).toISOString(),
  last_used_at: isoOrNull(directory.uses.lastUsedAtMs(preset.id)),
});

/** A preset as it was between two changes. */
const presetVersionSchema = lazily(() =>
  z
    .object({
      object: z.literal("preset_version"),
      version: z.int(),
      name: z.string(),
      description: z.string().nullable(),
      config: presetConfigSchema,
      author: z
        .string()
        .nullable()
        .describe(
          "Id of the user or management key; null for versions from before authors were recorded.",
        ),
      created_at: z.string(),
    })
    .meta({ id: "PresetVersion" }),
);

/** Returns the record of a version. */
const presetVersionObject = ({ createdAtMs, ...version }: PresetVersion) => ({
  object: "preset_version",
  ...version,
  created_at: new Date(createdAtMs).toISOString(),
});

const workspaceIdOf = (context: RequestContext<unknown, AccountCaller>): string =>
  context.caller.workspace.id;

const authorOf = (context: RequestContext<unknown, AccountCaller>): string =>
  creatorIdOf(context.caller);

const referenceOf = (context: RequestContext<unknown, AccountCaller>): PresetReference => ({
  workspaceId: workspaceIdOf(context),
  slug: context.param("slug"),
});

/**
 * Takes the body without checking it first: presets have error codes of their own for what is
 * missing.
 */
const asItCame = {
  bodyBytesMax: accountBodyBytesMax,
  body: z.record(z.string(), z.unknown()),
} as const;

export const createPreset = defineEndpoint({
  ...forPresets,
  method: "POST",
  idempotent: true,
  path: "/presets",
  access: writesPresets,
  summary: "Create a preset.",
  description:
    'Requests use it as model: "@preset/<slug>". Settings in a request take precedence over the preset. Unknown fields ' +
    "of config are ignored.",
  ...asItCame,
  rawBody: newPresetSchema,
  response: presetObjectSchema,
  async handle(context, deps: Pick<Dependencies, "directory" | "presetEditor">) {
    const wanted = readNewPreset(context.body);
    const preset = await deps.presetEditor.create(
      { workspaceId: workspaceIdOf(context), ...wanted },
      authorOf(context),
    );
    context.changed = preset.slug;
    return context.json(presetObject(preset, deps));
  },
});

export const listPresets = defineEndpoint({
  ...forPresets,
  method: "GET",
  path: "/presets",
  access: readsPresets,
  summary: "List presets.",
  description:
    "Without limit, returns all; with limit, returns next_cursor, to send as cursor for the next page.",
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(presetObjectSchema()),
      ...placeFields(),
    }),
  handle(context, deps: Pick<Dependencies, "directory" | "presets">) {
    const { data, place } = pageOf(
      deps.presets.presetsOf(workspaceIdOf(context)),
      checkBody(pageQuery, Object.fromEntries(context.query)),
      {
        idOf: ({ slug }) => slug,
        order: { rankOf: ({ createdAtMs, id }) => timeRank(createdAtMs, id), compare: descending },
      },
    );
    return context.json({
      object: "list",
      data: data.map((preset) => presetObject(preset, deps)),
      ...place,
    });
  },
});

export const getPreset = defineEndpoint({
  ...forPresets,
  method: "GET",
  path: "/presets/:slug",
  access: readsPresets,
  summary: "Show a preset.",
  response: presetObjectSchema,
  handle: (context, deps: Pick<Dependencies, "directory" | "presetEditor">) =>
    context.json(presetObject(deps.presetEditor.find(referenceOf(context)), deps)),
});

/** Changes some fields of a preset, in force for the very next request that names it. */
export const changePreset = defineEndpoint({
  ...forPresets,
  method: "PATCH",
  path: "/presets/:slug",
  access: writesPresets,
  summary: "Change a preset.",
  ...asItCame,
  rawBody: presetChangesSchema,
  response: presetObjectSchema,
  async handle(context, deps: Pick<Dependencies, "directory" | "presetEditor">) {
    const reference = referenceOf(context);
    deps.presetEditor.find(reference);
    const changes = readPresetChanges(context.body, reference.slug);
    return context.json(
      presetObject(await deps.presetEditor.change(reference, changes, authorOf(context)), deps),
    );
  },
});

export const deletePreset = defineEndpoint({
  ...forPresets,
  method: "DELETE",
  path: "/presets/:slug",
  access: writesPresets,
  summary: "Delete a preset.",
  response: () => z.object({ deleted: z.literal(true), slug: z.string() }),
  async handle(context, { presetEditor }: Pick<Dependencies, "presetEditor">) {
    const reference = referenceOf(context);
    await presetEditor.remove(reference);
    return context.json({ deleted: true, slug: reference.slug });
  },
});

export const listPresetVersions = defineEndpoint({
  ...forPresets,
  method: "GET",
  path: "/presets/:slug/versions",
  access: readsPresets,
  summary: "List the versions of a preset.",
  description: `Returns the newest ${versionsMax}, newest first. Each change of a preset creates a version.`,
  response: () => z.object({ object: z.literal("list"), data: z.array(presetVersionSchema()) }),
  async handle(context, { presetEditor }: Pick<Dependencies, "presetEditor">) {
    return context.json({
      object: "list",
      data: (await presetEditor.versions(referenceOf(context))).map(presetVersionObject),
    });
  },
});

export const restorePresetVersion = defineEndpoint({
  ...forPresets,
  method: "POST",
  idempotent: true,
  path: "/presets/:slug/versions/:version/restore",
  access: writesPresets,
  summary: "Restore a version of a preset.",
  description: "Copies the name, description and configuration of the version into a new version.",
  response: presetObjectSchema,
  async handle(context, deps: Pick<Dependencies, "directory" | "presetEditor">) {
    const reference = referenceOf(context);
    const version = Number(context.param("version"));
    context.changed = reference.slug;
    return context.json(
      presetObject(await deps.presetEditor.restore(reference, version, authorOf(context)), deps),
    );
  },
});
