import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { countOf } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { PickerPopup, type Choice } from "../../ui/picker-popup.tsx";
import { batchPagesQuery, nameOf as nameOfBatch } from "../batches/api.ts";
import { serviceUsageQuery, workspacesQuery } from "../operator/api.ts";
import { type UsageGroup, type UsageRow, totalsOf, usageQuery } from "../usage/api.ts";
import { type ActivityFilters, failuresQuery, type Change } from "./api.ts";
import { usedFilters, type UsedFilter, ofWorkspace } from "./used-filters.ts";

/** What the API groups usage by for a filter, and the value of a row. */
const groups: Readonly<
  Partial<Record<UsedFilter, readonly [UsageGroup, (row: UsageRow) => string]>>
> = {
  model: ["model", ({ model }) => model ?? ""],
  provider: ["provider", ({ provider }) => provider ?? ""],
  key_id: ["key", ({ key_id: key }) => key ?? ""],
  app: ["app", ({ app }) => app ?? ""],
  session_id: ["session", ({ session_id: session }) => session ?? ""],
  preset_id: ["preset", ({ preset_id: preset }) => preset ?? ""],
};
const serviceGroups = {
  model: "model",
  provider: "provider",
  workspace_id: "workspace",
} as const;
type ServiceFilter = keyof typeof serviceGroups;

/** A value of a filter, with the number of its requests. */
type Used = readonly [value: string, requests: number];

interface Wanted {
  name: UsedFilter;
  filters: ActivityFilters;
}

/**
 * The values that requests of one workspace have in the range, those of most requests first: of the
 * person's own one, or of one that an operator has chosen.
 */
function useOwn(
  { name, filters: { range, from, to } }: Wanted,
  { enabled, workspaceId }: { enabled: boolean; workspaceId: string | undefined },
) {
  const [group, valueOf] = groups[name] ?? [];
  const usage = useQuery({
    ...usageQuery({ range: { range, from, to }, group, workspaceId }),
    enabled: enabled && group !== undefined,
  });
  const failures = useQuery({
    ...failuresQuery({ range, from, to }),
    enabled: enabled && name === "error",
  });
  const codes = new Map<string, number>();
  for (const { code, requests } of failures.data?.data ?? [])
    if (code !== null) codes.set(code, (codes.get(code) ?? 0) + requests);
  const used: readonly Used[] =
    valueOf === undefined
      ? [...codes]
      : [...totalsOf(usage.data?.data ?? [], { figure: "requests", nameOf: valueOf })];
  return { used, isLoading: usage.isLoading || failures.isLoading };
}

/** The newest batches, with their names: no sums of usage know them. */
function useBatches(enabled: boolean) {
  const { data, isLoading } = useInfiniteQuery({ ...batchPagesQuery, enabled });
  const batches = data?.pages.flatMap((page) => page.data) ?? [];
  return {
    names: new Map(batches.map((batch) => [batch.id, nameOfBatch(batch)])),
    used: batches.map(({ id, request_counts: { total } }): Used => [id, total]),
    isLoading,
  };
}

/** The same of every workspace, over the last 30 days. */
function useService(name: UsedFilter, enabled: boolean) {
  const group = Object.hasOwn(serviceGroups, name)
    ? serviceGroups[name as ServiceFilter]
    : undefined;
  const usage = useQuery({
    ...serviceUsageQuery(group ?? "model"),
    enabled: enabled && group !== undefined,
  });
  const used: readonly Used[] = (usage.data?.data ?? []).map(({ id, requests }) => [id, requests]);
  return { used, isLoading: usage.isLoading };
}

/** The list that a filter is chosen from. */
export function UsedPopup({
  name,
  nameOf,
  shown,
  face,
  filters,
  onFilter,
  acrossWorkspaces,
}: Wanted & {
  nameOf: ((value: string) => string) | undefined;
  shown: string;
  face: ReactNode;
  onFilter: Change;
  acrossWorkspaces: boolean;
}) {
  const { label, any, all } = usedFilters[name];
  const workspaceId =
    acrossWorkspaces && ofWorkspace.includes(name) ? filters.workspace_id : undefined;
  const isOfOne = !acrossWorkspaces || workspaceId !== undefined;
  const own = useOwn({ name, filters }, { enabled: isOfOne, workspaceId });
  const service = useService(name, !isOfOne);
  const batches = useBatches(name === "batch_id" && !acrossWorkspaces);
  const workspaces = useQuery({
    ...workspacesQuery(undefined),
    enabled: name === "workspace_id",
  });
  const textOf = (value: string): string =>
    name === "error"
      ? wordOf(value)
      : (workspaces.data?.data.find(({ id }) => id === value)?.name ??
        batches.names.get(value) ??
        nameOf?.(value) ??
        value);
  const { used, isLoading } = !isOfOne ? service : name === "batch_id" ? batches : own;
  const items = used
    .filter(([value]) => value !== "")
    .map(([value, requests]): Choice => {
      const text = textOf(value);
      return {
        value,
        label: text,
        note: text === value ? "" : value,
        price: countOf(requests, "request"),
      };
    });
  return (
    <PickerPopup
      label={label}
      value={filters[name] ?? ""}
      shown={shown}
      face={face}
      groups={[{ value: "", items: [{ value: "", label: any, note: "" }, ...items] }]}
      onChange={(value) => onFilter({ [name]: value || undefined })}
      search={`Search ${all}`}
      none={isLoading ? "Loading" : `No request of this range has such a ${label.toLowerCase()}.`}
    />
  );
}
