import type { JsonFields, PresetConfig } from "./preset.ts";

/** How the settings of a preset are written in one client dialect. Pure. */
export interface PresetSpelling {
  /**
   * Members that the preset gives a request beside `model`, `models` and `provider`, which all dialects share:
   * only those that the request has not set itself. What the dialect has no member for is left out.
   */
  settings(config: PresetConfig, body: JsonFields): JsonFields;
  /** Whether the request brings a system message, wherever the dialect has a place for one. */
  hasSystem(body: JsonFields): boolean;
  /** The member that says `system`, as JSON text; `textOf` gives a member's own text. */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}
