import type { Answers, Bodies } from "../../lib/api-types.ts";
import { pagedQuery, request, sending } from "../../lib/api.ts";

/** A name of the workspace's own for a model, or for several. */
export type Alias = Answers["GET /aliases"]["data"][number];
/** What a name means: a model; a list of fallbacks; or entries with weights or conditions. */
export type AliasTarget = Alias["target"];

export const aliasPagesQuery = pagedQuery<Alias>(["aliases"], "/aliases");

const pathOf = (name: string): string => `/aliases/${encodeURIComponent(name)}`;

export const createAlias = (body: Bodies["POST /aliases"]) =>
  request<Alias>("/aliases", sending("POST /aliases", body));
export const changeAlias = ({
  name,
  ...body
}: { name: string } & Bodies["PATCH /aliases/{name}"]) =>
  request<Alias>(pathOf(name), sending("PATCH /aliases/{name}", body));
export const deleteAlias = ({ name }: Pick<Alias, "name">) =>
  request<{ deleted: true }>(pathOf(name), { method: "DELETE" });
