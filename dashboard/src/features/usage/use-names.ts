import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type List, request } from "../../lib/api.ts";
import { useScope, useSession } from "../../lib/session.ts";
import type { Customer } from "../customers/api.ts";
import { keysQuery } from "../keys/api.ts";
import type { Preset } from "../presets/api.ts";
import type { Run } from "../runs/api.ts";
import { providersQuery } from "../provider-keys/api.ts";
import type { Names, PageGroup } from "./api.ts";

/** Names by id; where several have one name, each has beside it what tells them apart. */
function namesOf(
  rows: readonly (readonly [id: string, name: string, mark: string])[] = [],
): ReadonlyMap<string, string> {
  const named = Map.groupBy(rows, ([, name]) => name);
  return new Map(
    rows.map(([id, name, mark]) => [
      id,
      (named.get(name)?.length ?? 0) > 1 ? `${name} (${mark})` : name,
    ]),
  );
}

/**
 * Names of the keys, of the people who made them, of presets and of customers, where the page groups
 * by them and as far as the session may read them.
 */
export function useNames(grouped: readonly (PageGroup | undefined)[]): Names {
  const { data: session } = useSession();
  const seesPresets = useScope("read:presets");
  const seesKeys = useScope("read:llm-keys");
  const keys = useQuery({
    ...keysQuery,
    enabled: seesKeys && (grouped.includes("key") || grouped.includes("person")),
  });
  const organizationId = session?.workspace.organization_id ?? undefined;
  // A personal workspace has no members.
  const own = organizationId === undefined ? session?.user : undefined;
  const members = useQuery({
    queryKey: ["members", organizationId, "names"],
    enabled: organizationId !== undefined && grouped.includes("person"),
    queryFn: () =>
      request<List<{ user_id: string; name: string; email: string }>>(
        `/organizations/${organizationId}/members`,
      ),
  });
  const presets = useQuery({
    queryKey: ["presets", "names"],
    queryFn: () => request<List<Preset>>("/presets?limit=100"),
    enabled: seesPresets && grouped.includes("preset"),
  });
  const customers = useQuery({
    queryKey: ["customers", "names"],
    queryFn: () => request<List<Customer>>("/customers?limit=100"),
    enabled: seesKeys && grouped.includes("customer"),
  });
  const runs = useQuery({
    queryKey: ["runs", "names"],
    queryFn: () => request<List<Run>>("/runs?limit=100"),
    enabled: seesKeys && grouped.includes("key"),
  });
  const providers = useQuery({ ...providersQuery, enabled: grouped.includes("provider") });
  return useMemo(
    () => ({
      providers: namesOf(providers.data?.data.map(({ id, name }) => [id, name, id])),
      // Runs spend with keys of their own.
      keys: namesOf([
        ...(keys.data?.data ?? []).map(({ id, name, label }) => [id, name, label] as const),
        ...(runs.data?.data ?? []).map(({ id, name }) => [id, name ?? id, id] as const),
      ]),
      makers: new Map(keys.data?.data.map(({ id, creator_user_id: maker }) => [id, maker])),
      presets: namesOf(presets.data?.data.map(({ id, name, slug }) => [id, name, slug])),
      customers: namesOf(
        customers.data?.data.map(({ external_id: id, name }) => [id, name ?? id, id]),
      ),
      people: namesOf([
        ...(members.data?.data ?? []).map(
          ({ user_id: id, name, email }) => [id, name, email] as const,
        ),
        ...(own === undefined ? [] : [[own.id, own.name, own.email] as const]),
      ]),
    }),
    [keys.data, runs.data, members.data, own, presets.data, customers.data, providers.data],
  );
}
