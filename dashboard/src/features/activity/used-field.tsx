import { lazy } from "react";
import { PickerFace, PickerTrigger } from "../../ui/picker.tsx";
import type { ActivityFilters, Change } from "./api.ts";
import { usedFilters, type UsedFilter } from "./used-filters.ts";

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
  const face = <PickerFace shown={shown} />;
  return (
    <PickerTrigger {...{ label, shown, load, face }}>
      <Popup {...{ name, nameOf, shown, face, filters, onFilter, acrossWorkspaces }} />
    </PickerTrigger>
  );
}
