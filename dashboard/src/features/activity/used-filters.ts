/** Names of the filters that are chosen from values in use: of the field, of no choice, of all values. */
export const usedFilters = {
  model: { label: "Model", any: "Any model", all: "models" },
  provider: { label: "Provider", any: "Any provider", all: "providers" },
  key_id: { label: "Key", any: "Any key", all: "keys" },
  workspace_id: { label: "Of workspace", any: "Any workspace", all: "workspaces" },
  app: { label: "App", any: "Any app", all: "apps" },
  session_id: { label: "Session", any: "Any session", all: "sessions" },
  preset_id: { label: "Preset", any: "Any preset", all: "presets" },
  batch_id: { label: "Batch", any: "Any batch", all: "batches" },
  error: { label: "Error", any: "Any error", all: "errors" },
} as const;

/** A filter that is chosen from what was used. */
export type UsedFilter = keyof typeof usedFilters;

/** The filters whose values are known of one workspace alone, which an operator chooses first. */
export const ofWorkspace: readonly UsedFilter[] = ["key_id", "app", "session_id", "preset_id"];
