import { z } from "zod";
import type { Preset } from "../../account/presets/preset.ts";
import { presetConfigSchema } from "./preset-config.ts";

/** The preset record of the contract. */
export const presetObjectSchema = z.object({
  id: z.string(), object: z.literal("preset"), slug: z.string(), name: z.string(), description: z.string().nullable(),
  config: presetConfigSchema, created_at: z.string(), updated_at: z.string(),
}).meta({ id: "Preset" });

/** The public record of a preset. */
export const presetObject = (preset: Preset) => ({
  id: preset.id, object: "preset", slug: preset.slug, name: preset.name, description: preset.description, config: preset.config,
  created_at: new Date(preset.createdAtMs).toISOString(), updated_at: new Date(preset.updatedAtMs).toISOString(),
});
