import { queryOptions } from "@tanstack/react-query";
import type { Answers, Bodies } from "../../../lib/api-types.ts";
import { request, sending } from "../../../lib/api.ts";

/** A provider, router or alias, of the file or of the page. */
export type Entry = Answers["GET /admin/configuration"]["data"][number];
export type Section = Entry["section"];
/** What a provider answered that is not stored yet. */
export type Trial = Answers["POST /admin/configuration/test"];

export const configurationQuery = queryOptions({
  queryKey: ["operator", "configuration"],
  queryFn: () => request<Answers["GET /admin/configuration"]>("/admin/configuration"),
});

export const putEntry = (body: Bodies["POST /admin/configuration"]) =>
  request("/admin/configuration", sending("POST /admin/configuration", body));
export const testEntry = (body: Bodies["POST /admin/configuration/test"]) =>
  request<Trial>("/admin/configuration/test", sending("POST /admin/configuration/test", body));
export const deleteEntry = ({ section, id }: Pick<Entry, "section" | "id">) =>
  request(`/admin/configuration/${section}/${encodeURIComponent(id)}`, { method: "DELETE" });
