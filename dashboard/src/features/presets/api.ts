import { queryOptions } from "@tanstack/react-query";
import type { Row } from "../../lib/api-types.ts";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** What a preset sets, by the names of chat requests. */
export type PresetConfig = Readonly<Record<string, unknown>>;

/** A named bundle of request settings. */
export type Preset = Row<"GET /presets">;

/** A preset as it was from one change to the next. */
export type PresetVersion = Row<"GET /presets/{slug}/versions">;

export const presetPagesQuery = pagedQuery<Preset>(["presets"], "/presets");
export const presetQuery = (slug: string) =>
  queryOptions({
    queryKey: ["presets", slug],
    queryFn: () => request<Preset>(`/presets/${encodeURIComponent(slug)}`),
  });
export const versionsQuery = (slug: string) =>
  queryOptions({
    queryKey: ["presets", slug, "versions"],
    queryFn: () => request<List<PresetVersion>>(`/presets/${encodeURIComponent(slug)}/versions`),
  });

export const createPreset = (body: { slug: string; name: string; config: PresetConfig }) =>
  request<Preset>("/presets", sending("POST /presets", body));
export const changePreset = ({
  slug,
  ...body
}: {
  slug: string;
  name: string;
  description: string | null;
  config: PresetConfig;
}) => request<Preset>(`/presets/${slug}`, sending("PATCH /presets/{slug}", body));
export const deletePreset = (slug: string) => request(`/presets/${slug}`, { method: "DELETE" });
export const restoreVersion = ({ slug, version }: { slug: string; version: number }) =>
  request<Preset>(`/presets/${slug}/versions/${version}/restore`, { method: "POST" });
