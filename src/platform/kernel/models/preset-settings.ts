import type { JsonFields } from "../json/json-members.ts";

/**
 * The names of the output cap in requests of chat and in presets: OpenAI's present one, which
 * decides, and its former one.
 */
export const outputCapNames = ["max_completion_tokens", "max_tokens"] as const;
/** A name of the output cap. */
export type OutputCapName = (typeof outputCapNames)[number];

/**
 * The settings of a preset that each dialect writes in its own way, by the names of the contract.
 */
export interface PresetSettings extends Partial<Record<OutputCapName, number>> {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
  stop?: string | readonly string[];
  seed?: number;
  response_format?: JsonFields;
  /** In the form of chat. */
  tools?: readonly JsonFields[];
  tool_choice?: string | JsonFields;
  reasoning?: { effort?: string; max_tokens?: number; exclude?: boolean; enabled?: boolean };
  stream_options?: JsonFields;
}

/** Returns a preset's output cap under either of its names. */
export const outputBound = (settings: PresetSettings): number | undefined =>
  settings.max_completion_tokens ?? settings.max_tokens;
