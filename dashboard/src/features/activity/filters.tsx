import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useState } from "react";
import { useScope } from "../../lib/session.ts";
import { Button, Card, Input, Select } from "../../ui/parts.tsx";
import { keysQuery } from "../keys/api.ts";
import type { ActivityFilters } from "./api.ts";
import style from "./activity.module.css";

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

type TextFilter = Exclude<keyof ActivityFilters, "status" | "range" | "from" | "to">;
const furtherTexts: readonly (readonly [TextFilter, string])[] = [
  ["error", "Error code"],
  ["app", "App"],
  ["session_id", "Session id"],
  ["preset_id", "Preset id"],
];

/** Changes filters of the address; what is undefined is taken away. */
export type Change = (change: Record<string, string | undefined>) => void;

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

/** The filters of a list of requests; of one workspace unless it says otherwise. */
export function Filters({
  filters,
  onFilter,
  acrossWorkspaces = false,
}: FilterProps & { acrossWorkspaces?: boolean }) {
  const further = acrossWorkspaces
    ? ([["key_id", "Key id"], ...furtherTexts] as const)
    : furtherTexts;
  const [isOpen, setOpen] = useState(further.some(([name]) => filters[name] !== undefined));
  return (
    <Card>
      <div className={style.filterBar} data-open={isOpen}>
        <div className={style.furtherOnPhone}>
          <TextField name="model" label="Model" {...{ filters, onFilter }} />
        </div>
        <div className={style.furtherOnPhone}>
          <TextField name="provider" label="Provider" {...{ filters, onFilter }} />
        </div>
        <div className={style.furtherOnPhone}>
          {acrossWorkspaces ? (
            <TextField name="workspace_id" label="Workspace id" {...{ filters, onFilter }} />
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
      {isOpen ? (
        <div className={style.moreFilters}>
          {further.map(([name, label]) => (
            <TextField key={name} {...{ name, label, filters, onFilter }} />
          ))}
        </div>
      ) : null}
    </Card>
  );
}
