import { queryOptions } from "@tanstack/react-query";
import { type List, queryOf, request } from "../../lib/api.ts";

/** Sums of one bucket, of one group where they are grouped. */
export interface UsageRow {
  bucket: string;
  model?: string;
  key_id?: string;
  provider?: string;
  requests: number;
  errors: number;
  tokens: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost: number;
}

/** What usage is grouped by. */
export type UsageGroup = "model" | "key" | "provider";

const dayMs = 86_400_000;
const dayStart = (atMs: number): number => atMs - (atMs % dayMs);

/** Usage by UTC day over the last `days`, and `daysAgo` days before that. */
export const usageQuery = ({ days, daysAgo = 0, group }: { days: number; daysAgo?: number; group?: UsageGroup | undefined }) => {
  const to = dayStart(Date.now()) + dayMs - daysAgo * dayMs;
  return queryOptions({
    queryKey: ["usage", days, daysAgo, group],
    queryFn: () => request<List<UsageRow>>(`/analytics/usage${queryOf({
      from: new Date(to - days * dayMs).toISOString(), to: new Date(to).toISOString(), interval: "day", group_by: group,
    })}`),
  });
};

/** One figure over all rows. */
export const sumOf = (rows: readonly UsageRow[], figure: "requests" | "errors" | "tokens" | "cost" | "cached_tokens" | "prompt_tokens"): number =>
  rows.reduce((sum, row) => sum + row[figure], 0);
