import { queryOptions } from "@tanstack/react-query";
import type { Row } from "../../lib/api-types.ts";
import { type List, request } from "../../lib/api.ts";

/** A request as the log shows it. */
export type Generation = Row<"GET /analytics/generations">;

/** The last requests, which the overview and the search show. */
export const latestQuery = queryOptions({
  queryKey: ["generations", "latest"],
  queryFn: () => request<List<Generation>>("/analytics/generations?limit=6"),
});
