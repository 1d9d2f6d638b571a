import { z } from "zod";
import type { Preset, PresetVersion } from "../../account/presets/preset.ts";
import { isoOrNull } from "../../platform/lib/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { presetConfigSchema } from "./preset-config.ts";

/** The preset record of the contract. */
export const presetObjectSchema = z
  .object({
    id: z.string(),
    object: z.literal("preset"),
    slug: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    config: presetConfigSchema,
    version: z.int().describe("Begins with 1; each change makes the next one."),
    created_at: z.string(),
    updated_at: z.string(),
    last_used_at: z.string().nullable(),
  })
  .meta({ id: "Preset" });

/** The public record of a preset. */
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

/** A preset as it was from one change to the next. */
export const presetVersionSchema = z
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
        "Id of the user or management key; null where it was made before versions were kept.",
      ),
    created_at: z.string(),
  })
  .meta({ id: "PresetVersion" });

/** The record of a version. */
export const presetVersionObject = ({ createdAtMs, ...version }: PresetVersion) => ({
  object: "preset_version",
  ...version,
  created_at: new Date(createdAtMs).toISOString(),
});
