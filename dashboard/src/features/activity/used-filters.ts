/** The filters that are chosen from what was used, with their name and what stands for no choice. */
export const usedFilters = {
  model: { label: "Model", any: "Any model", all: "models" },
  provider: { label: "Provider", any: "Any provider", all: "providers" },
  workspace_id: { label: "Of workspace", any: "Any workspace", all: "workspaces" },
  app: { label: "App", any: "Any app", all: "apps" },
  session_id: { label: "Session", any: "Any session", all: "sessions" },
  preset_id: { label: "Preset", any: "Any preset", all: "presets" },
  error: { label: "Error", any: "Any error", all: "errors" },
} as const;

/** A filter that is chosen from what was used. */
export type UsedFilter = keyof typeof usedFilters;
