import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { changePreferences, preferencesQuery } from "../account/preferences.ts";

/** Pages whose filters can be saved. */
export type ViewPage = "activity" | "usage";

/** What an address narrows a page to, under a name. */
export interface SavedView {
  name: string;
  search: Readonly<Record<string, string>>;
}

const isView = (value: unknown): value is SavedView =>
  typeof value === "object" &&
  value !== null &&
  typeof Reflect.get(value, "name") === "string" &&
  typeof Reflect.get(value, "search") === "object";

/** The most views of a page; preferences are a small object. */
export const viewsMax = 20;

/** Reads the person's views of a page, and a way to keep others in their place. */
export function useViews(page: ViewPage) {
  const queries = useQueryClient();
  const preference = `${page}.views`;
  const { data } = useQuery(preferencesQuery);
  const kept = data?.[preference];
  const keep = useMutation({
    mutationFn: (views: readonly SavedView[]) => changePreferences({ [preference]: views }),
    onSuccess: (preferences) => queries.setQueryData(preferencesQuery.queryKey, preferences),
  });
  return { views: Array.isArray(kept) ? kept.filter(isView) : [], keep };
}
