import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useState } from "react";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Input, Select } from "../../ui/fields.tsx";
import { wordOf } from "../../lib/words.ts";
import { keysQuery } from "../keys/api.ts";
import { workspacesQuery } from "../operator/api.ts";
import { useProviderNames } from "../provider-keys/provider-names.tsx";
import { useNames } from "../usage/use-names.ts";
import type { ActivityFilters, Change } from "./api.ts";
import { UsedField } from "./used-field.tsx";
import style from "./activity.module.css";
import { ofWorkspace } from "./used-filters.ts";

const statuses = [
  ["", "Any status"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cut", "Cut off"],
  ["cancelled", "Cancelled"],
  ["cached", "From cache"],
] as const;
const ranges = [
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["14d", "Last 14 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
] as const;
const ownRange = ["", "Chosen range"] as const;
/** The range of lists that are opened without one. */
export const defaultRange = "7d";

/** Filters that are typed across workspaces; of one workspace they are chosen. */
type TextFilter = "key_id" | "error" | "app" | "session_id" | "preset_id" | "batch_id";
const typed: readonly (readonly [TextFilter, string])[] = [
  ["key_id", "Key id"],
  ["error", "Error code"],
  ["app", "App"],
  ["session_id", "Session id"],
  ["preset_id", "Preset id"],
  ["batch_id", "Batch id"],
];
const chosenFurther = ["error", "app", "session_id", "preset_id", "batch_id"] as const;

interface FilterProps {
  filters: ActivityFilters;
  onFilter: Change;
}

function TextField({
  name,
  label,
  filters,
  onFilter,
}: FilterProps & { name: TextFilter; label: string }) {
  const take = (input: HTMLInputElement): void =>
    onFilter({ [name]: input.value.trim() || undefined });
  return (
    // The key gives the field its new text where the filter was changed elsewhere.
    <Input
      key={filters[name] ?? ""}
      type="search"
      aria-label={label}
      placeholder={label}
      defaultValue={filters[name]}
      onBlur={(event) => {
        if ((filters[name] ?? "") !== event.target.value.trim()) take(event.target);
      }}
      onKeyDown={(event: KeyboardEvent<HTMLInputElement>) => {
        if (event.key === "Enter") take(event.currentTarget);
      }}
    />
  );
}

/** The keys of the workspace by name. A key that is not in the list is named by its id. */
function KeyField({ filters: { key_id: chosen }, onFilter }: FilterProps) {
  const mayRead = useScope("read:llm-keys");
  const { data } = useQuery({ ...keysQuery, enabled: mayRead });
  const keys = data?.data.map(({ id, name }) => [id, name] as const) ?? [];
  const isListed = chosen === undefined || keys.some(([id]) => id === chosen);
  return (
    <Select
      label="Key"
      value={chosen ?? ""}
      options={[["", "Any key"], ...keys, ...(isListed ? [] : [[chosen, chosen] as const])]}
      onChange={(id) => onFilter({ key_id: id || undefined })}
    />
  );
}

function RangeField({ filters: { range, from }, onFilter }: FilterProps) {
  const isOwn = range === undefined && from !== undefined;
  return (
    <Select
      label="Range"
      value={isOwn ? "" : (range ?? defaultRange)}
      options={isOwn ? [ownRange, ...ranges] : ranges}
      onChange={(value) => onFilter({ range: value || undefined, from: undefined, to: undefined })}
    />
  );
}

/** The filters behind "More filters": chosen of what was used, or typed where no workspace is. */
function FurtherFields(props: FilterProps & { acrossWorkspaces: boolean }) {
  const { acrossWorkspaces, filters } = props;
  const presets = useNames(acrossWorkspaces ? [] : ["preset"]).presets;
  const names: readonly TextFilter[] = acrossWorkspaces
    ? typed.map(([name]) => name)
    : chosenFurther;
  const isChosen = (name: TextFilter): boolean =>
    !acrossWorkspaces || (filters.workspace_id !== undefined && ofWorkspace.includes(name));
  const nameOf: Partial<Record<TextFilter, (value: string) => string>> = {
    error: wordOf,
    preset_id: (id) => presets.get(id) ?? id,
  };
  return (
    <div className={style.moreFilters}>
      {names.map((name) =>
        isChosen(name) ? (
          <UsedField key={name} {...props} name={name} nameOf={nameOf[name]} />
        ) : (
          <TextField
            key={name}
            {...props}
            name={name}
            label={typed.find(([each]) => each === name)?.[1] ?? name}
          />
        ),
      )}
    </div>
  );
}

/** The filters of a list of requests; of one workspace unless it says otherwise. */
export function Filters({
  filters,
  onFilter,
  acrossWorkspaces = false,
}: FilterProps & { acrossWorkspaces?: boolean }) {
  const [isOpen, setOpen] = useState(
    typed.some(([name]) => (acrossWorkspaces || name !== "key_id") && filters[name] !== undefined),
  );
  const providerName = useProviderNames();
  const workspaces = useQuery({
    ...workspacesQuery(undefined),
    enabled: acrossWorkspaces && filters.workspace_id !== undefined,
  });
  const workspaceName = (id: string): string =>
    workspaces.data?.data.find((each) => each.id === id)?.name ?? id;
  const shared = { filters, onFilter, acrossWorkspaces };
  return (
    <Card>
      <div className={style.filterBar} data-open={isOpen}>
        <div className={style.furtherOnPhone} data-filter>
          <UsedField name="model" {...shared} />
        </div>
        <div className={style.furtherOnPhone}>
          <UsedField name="provider" nameOf={providerName} {...shared} />
        </div>
        <div className={style.furtherOnPhone}>
          {acrossWorkspaces ? (
            <UsedField name="workspace_id" nameOf={workspaceName} {...shared} />
          ) : (
            <KeyField {...{ filters, onFilter }} />
          )}
        </div>
        <Select
          label="Status"
          value={filters.status ?? ""}
          options={statuses}
          onChange={(value) => onFilter({ status: value || undefined })}
        />
        <RangeField {...{ filters, onFilter }} />
        <Button look="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Fewer filters" : "More filters"}
        </Button>
      </div>
      {isOpen ? <FurtherFields {...shared} /> : null}
    </Card>
  );
}
