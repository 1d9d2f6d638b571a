import { z } from "zod";
import type { PresetChanges, PresetConfig } from "../../account/presets/preset.ts";
import { checkBody, refuseUnknownFields } from "../../http/check-body.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { nameField, plainText } from "./account-fields.ts";
import { presetConfigOf, presetConfigSchema, type PresetConfigInput } from "./preset-config.ts";

type Body = Readonly<Record<string, unknown>>;

const slugPattern = /^[a-z0-9][a-z0-9-]*$/;
const slugCharactersMax = 128;

const slugField = z.string().regex(slugPattern).max(slugCharactersMax);
const descriptionField = plainText(2_000).nullish();

/** Body of a creation, for documents; `readNewPreset` checks it, with the contract's codes. */
export const newPresetSchema = z.object({
  slug: slugField,
  name: nameField,
  description: descriptionField,
  config: presetConfigSchema,
});

/** Body of a change, for documents; `readPresetChanges` checks it. */
export const presetChangesSchema = z.object({
  name: nameField.optional(),
  description: descriptionField.describe("Left out it stays, null clears it."),
  config: presetConfigSchema
    .optional()
    .describe("Merged field by field at the first level; null takes a field out."),
});

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function slugOf({ slug }: Body): string {
  if (slugField.safeParse(slug).success) return slug as string;
  const message = `slug is required: lower-case letters, digits and dashes, no dash first, at most ${slugCharactersMax} characters.`;
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

/** A preset as a creation describes it. Throws `invalid_slug`, `name_required`, `config_required` or `bad_request`. */
export function readNewPreset(body: Body): {
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
 * What a request changes of a preset. An empty name changes nothing, as the contract has it ("if provided and
 * non-empty"). Throws `config_required` or `bad_request`.
 */
export function readPresetChanges(body: Body, slug: string): PresetChanges {
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
