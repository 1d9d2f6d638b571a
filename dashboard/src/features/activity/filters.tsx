import type { KeyboardEvent } from "react";
import { Actions, Card, Input, Select } from "../../ui/parts.tsx";
import type { ActivityFilters } from "./api.ts";

const statuses = [
  ["", "Any status"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["cut", "Cut"],
  ["cancelled", "Cancelled"],
  ["cached", "From cache"],
] as const;
const ranges = [
  ["", "All that is kept"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
] as const;
const texts = [
  ["model", "Model"],
  ["provider", "Provider"],
  ["error", "Error code"],
  ["app", "App"],
  ["key_id", "Key id"],
  ["session_id", "Session id"],
  ["preset_id", "Preset id"],
] as const;
const ofWorkspaces = [["workspace_id", "Workspace id"], ...texts] as const;

/** Changes filters of the address; what is undefined is taken away. */
export type Change = (change: Record<string, string | undefined>) => void;

/** What a list of requests is narrowed by; of one workspace unless it says otherwise. */
export function Filters({
  filters,
  onFilter,
  acrossWorkspaces = false,
}: {
  filters: ActivityFilters;
  onFilter: Change;
  acrossWorkspaces?: boolean;
}) {
  const take = (name: string, input: HTMLInputElement): void =>
    onFilter({ [name]: input.value.trim() || undefined });
  return (
    <Card>
      <Actions>
        {(acrossWorkspaces ? ofWorkspaces : texts).map(([name, label]) => (
          // The key gives the field its new text where the filter was changed elsewhere.
          <Input
            key={`${name} ${filters[name] ?? ""}`}
            type="search"
            aria-label={label}
            placeholder={label}
            defaultValue={filters[name]}
            onBlur={(event) => {
              if ((filters[name] ?? "") !== event.target.value.trim()) take(name, event.target);
            }}
            onKeyDown={(event: KeyboardEvent<HTMLInputElement>) => {
              if (event.key === "Enter") take(name, event.currentTarget);
            }}
          />
        ))}
        <Select
          label="Status"
          value={filters.status ?? ""}
          options={statuses}
          onChange={(value) => onFilter({ status: value || undefined })}
        />
        <Select
          label="Range"
          value={filters.range ?? ""}
          options={ranges}
          onChange={(value) =>
            onFilter({ range: value || undefined, from: undefined, to: undefined })
          }
        />
      </Actions>
    </Card>
  );
}
