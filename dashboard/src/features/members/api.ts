import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** Role of a member in an organisation. */
export type Role = Organization["role"];

/** An organisation of the person. */
export type Organization = Row<"GET /organizations">;

/** Somebody in an organisation. */
export type Member = Row<"GET /organizations/{id}/members">;

/** An open invitation. */
export type Invitation = Row<"GET /organizations/{id}/invitations">;

/** An invitation with its link, which is shown once. */
export type MadeInvitation = Answers["POST /organizations/{id}/invitations"];

/** Keys that a removed member had made: revoked ones, and those still in force. */
export type Removal = Answers["DELETE /organizations/{id}/members/{user_id}"];

export const organizationsQuery = queryOptions({
  queryKey: ["organizations"],
  queryFn: () => request<List<Organization>>("/organizations"),
});
export const membersQuery = (id: string) =>
  pagedQuery<Member>(["organizations", id, "members"], `/organizations/${id}/members`);
export const invitationsQuery = (id: string) =>
  queryOptions({
    queryKey: ["organizations", id, "invitations"],
    queryFn: () => request<List<Invitation>>(`/organizations/${id}/invitations`),
  });

export const createOrganization = (name: string) =>
  request<Organization>("/organizations", sending("POST /organizations", { name }));
export const renameOrganization = ({ id, name }: { id: string; name: string }) =>
  request(`/organizations/${id}`, sending("PATCH /organizations/{id}", { name }));
export const requireSecondFactor = ({ id, required }: { id: string; required: boolean }) =>
  request(
    `/organizations/${id}`,
    sending("PATCH /organizations/{id}", { second_factor_required: required }),
  );
export const deleteOrganization = ({ id, confirm }: { id: string; confirm: boolean }) =>
  request(`/organizations/${id}`, sending("DELETE /organizations/{id}", { confirm }));
export const invite = ({ id, ...body }: { id: string; email: string; role: Role }) =>
  request<MadeInvitation>(
    `/organizations/${id}/invitations`,
    sending("POST /organizations/{id}/invitations", body),
  );
export const revokeInvitation = ({ id, invitation }: { id: string; invitation: string }) =>
  request(`/organizations/${id}/invitations/${invitation}`, { method: "DELETE" });
export const changeRole = ({ id, user, role }: { id: string; user: string; role: Role }) =>
  request<Member>(
    `/organizations/${id}/members/${user}`,
    sending("PATCH /organizations/{id}/members/{user_id}", { role }),
  );
/** Names the keys to revoke when a member is removed. */
export type RevokedKeys = NonNullable<
  Bodies["DELETE /organizations/{id}/members/{user_id}"]["revoke_keys"]
>;
export const removeMember = ({ id, user, keys }: { id: string; user: string; keys: RevokedKeys }) =>
  request<Removal>(
    `/organizations/${id}/members/${user}`,
    sending("DELETE /organizations/{id}/members/{user_id}", { revoke_keys: keys }),
  );
