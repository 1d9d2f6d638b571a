import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { providersQuery } from "./api.ts";

/** Returns the name of a provider by its id; a provider of which none is known keeps its id. */
export function useProviderNames(): (id: string) => string {
  const { data } = useQuery(providersQuery);
  return useCallback((id) => data?.data.find((each) => each.id === id)?.name ?? id, [data]);
}

/** The name of a provider; a dash where there was none. */
export function ProviderName({ id }: { id: string | null | undefined }) {
  const nameOf = useProviderNames();
  return <span title={id ?? undefined}>{id ? nameOf(id) : "–"}</span>;
}
