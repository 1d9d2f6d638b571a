import { queryOptions } from "@tanstack/react-query";
import { type List, request } from "../../lib/api.ts";

/** The health snapshot, as far as the overview shows it. */
export interface Health {
  status: string;
  components: {
    providers?: {
      data?: {
        providers: readonly {
          name: string;
          status: string;
          latency_ms?: number;
          error_rate?: number;
        }[];
      };
    } | null;
  };
}

// The contract asks to poll no faster than once a minute.
export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: () => request<Health>("/health"),
  staleTime: 60_000,
});

/** Whether there is a key: one of them, and not the list that other screens show. */
export const firstKeyQuery = queryOptions({
  queryKey: ["keys", "first"],
  queryFn: () => request<List<unknown>>("/keys?include_disabled=true&limit=1"),
});
