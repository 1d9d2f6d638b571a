import { queryOptions } from "@tanstack/react-query";
import { request } from "../../lib/api.ts";

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
