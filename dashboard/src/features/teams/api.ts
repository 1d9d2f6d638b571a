import { queryOptions } from "@tanstack/react-query";
import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { type List, request, sending } from "../../lib/api.ts";

/** A part of the workspace with keys, members, models and a limit of its own. */
export type Team = Row<"GET /teams">;

const pathOf = (id: string): string => `/teams/${encodeURIComponent(id)}`;

export const teamsQuery = queryOptions({
  queryKey: ["teams"],
  queryFn: () => request<List<Team>>("/teams"),
});
export const teamQuery = (id: string) =>
  queryOptions({ queryKey: ["teams", id], queryFn: () => request<Team>(pathOf(id)) });
export const teamMembersQuery = (id: string) =>
  queryOptions({
    queryKey: ["teams", id, "members"],
    queryFn: () => request<Answers["GET /teams/{id}/members"]>(`${pathOf(id)}/members`),
  });
export const teamKeysQuery = (id: string) =>
  queryOptions({
    queryKey: ["teams", id, "keys"],
    queryFn: () =>
      request<List<Row<"GET /keys">>>(`/keys?include_disabled=true&team=${encodeURIComponent(id)}`),
  });

export const createTeam = (body: Bodies["POST /teams"]) =>
  request<Team>("/teams", sending("POST /teams", body));
export const changeTeam = ({ id, ...body }: { id: string } & Bodies["PATCH /teams/{id}"]) =>
  request<Team>(pathOf(id), sending("PATCH /teams/{id}", body));
export const deleteTeam = ({ id, keys }: { id: string; keys: "delete" | "keep" }) =>
  request<{ deleted: true }>(`${pathOf(id)}?keys=${keys}`, { method: "DELETE" });
export const addMember = ({ id, email }: { id: string; email: string }) =>
  request<Answers["POST /teams/{id}/members"]>(
    `${pathOf(id)}/members`,
    sending("POST /teams/{id}/members", { email }),
  );
export const removeMember = ({ id, userId }: { id: string; userId: string }) =>
  request<{ deleted: true }>(`${pathOf(id)}/members/${userId}`, { method: "DELETE" });
export const createKey = ({ id, name }: { id: string; name: string }) =>
  request<{ key: string }>("/keys", sending("POST /keys", { name, team_id: id }));
