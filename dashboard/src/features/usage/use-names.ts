import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type List, request } from "../../lib/api.ts";
import { useScope, useSession } from "../../lib/session.ts";
import type { Customer } from "../customers/api.ts";
import { keysQuery } from "../keys/api.ts";
import type { Preset } from "../presets/api.ts";
import { providersQuery } from "../provider-keys/api.ts";
import type { Names, PageGroup } from "./api.ts";

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
  const members = useQuery({
    queryKey: ["members", organizationId, "names"],
    enabled: organizationId !== undefined && grouped.includes("person"),
    queryFn: () =>
      request<List<{ user_id: string; name: string }>>(`/organizations/${organizationId}/members`),
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
  const providers = useQuery({ ...providersQuery, enabled: grouped.includes("provider") });
  return useMemo(
    () => ({
      providers: new Map((providers.data?.data ?? []).map(({ id, name }) => [id, name])),
      keys: new Map(
        (keys.data?.data ?? []).map(({ id, name, creator_user_id: person }) => [
          id,
          { name, person },
        ]),
      ),
      presets: new Map((presets.data?.data ?? []).map(({ id, name }) => [id, name])),
      customers: new Map(
        (customers.data?.data ?? []).map(({ external_id: id, name }) => [id, name ?? id]),
      ),
      people: new Map((members.data?.data ?? []).map(({ user_id: id, name }) => [id, name])),
    }),
    [keys.data, members.data, presets.data, customers.data, providers.data],
  );
}
