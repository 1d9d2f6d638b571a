import type { Bodies } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, pagedQuery, request, sending } from "../../lib/api.ts";

/** Role of a member in an organisation. */
export type Role = "owner" | "admin" | "member";

/** An organisation of the person. */
export interface Organization {
  id: string;
  name: string;
  role: Role;
  workspace_id: string;
  second_factor_required: boolean;
}

/** Somebody in an organisation. */
export interface Member {
  user_id: string;
  name: string;
  email: string;
  role: Role;
  /** Whether a password alone does not sign this member in. */
  second_factor: boolean;
  joined_at: string;
}

/** An open invitation. */
export interface Invitation {
  id: string;
  email: string;
  role: Role;
  expires_at: string;
}

/** An invitation with its link, which is shown once. */
export interface MadeInvitation {
  url: string;
  mail: string;
}

/** Keys that a removed member had made: revoked ones, and those still in force. */
export interface Removal {
  revoked_keys: readonly { id: string; name: string }[];
  keys_in_force: readonly { id: string; name: string }[];
}

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
