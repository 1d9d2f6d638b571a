import { queryOptions } from "@tanstack/react-query";
import { request, sending } from "../../lib/api.ts";

/** Preferences by name. */
type Preferences = Readonly<Record<string, unknown>>;

export const preferencesQuery = queryOptions({
  queryKey: ["preferences"],
  staleTime: 60_000,
  queryFn: async () =>
    (await request<{ preferences: Preferences }>("/session/preferences")).preferences,
});

export const changePreferences = async (body: Preferences): Promise<Preferences> =>
  (
    await request<{ preferences: Preferences }>(
      "/session/preferences",
      sending("PATCH /session/preferences", body),
    )
  ).preferences;
