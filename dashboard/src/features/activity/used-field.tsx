import { lazy } from "react";
import { LazyPopup } from "../../ui/lazy-popup.tsx";
import { PickerFace } from "../../ui/picker.tsx";
import pickerStyle from "../../ui/picker.module.css";
import type { Change } from "./filters.tsx";
import type { ActivityFilters } from "./api.ts";

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

const load = () => import("./used-popup.tsx");
const Popup = lazy(async () => ({ default: (await load()).UsedPopup }));

/** Chooses a filter from what the requests of the range have, by name and with their number. */
export function UsedField({
  name,
  nameOf,
  filters,
  onFilter,
  acrossWorkspaces,
}: {
  name: UsedFilter;
  /** The name of a value; where it is not known, the value itself. */
  nameOf?: ((value: string) => string) | undefined;
  filters: ActivityFilters;
  onFilter: Change;
  acrossWorkspaces: boolean;
}) {
  const { label, any } = usedFilters[name];
  const value = filters[name] ?? "";
  const shown = value === "" ? any : (nameOf?.(value) ?? value);
  return (
    <LazyPopup
      load={load}
      role="combobox"
      aria-expanded="false"
      aria-haspopup="listbox"
      aria-controls={undefined}
      className={pickerStyle["trigger"]}
      aria-label={`${label}: ${shown}`}
    >
      <PickerFace shown={shown} />
      <Popup {...{ name, nameOf, shown, filters, onFilter, acrossWorkspaces }} />
    </LazyPopup>
  );
}
