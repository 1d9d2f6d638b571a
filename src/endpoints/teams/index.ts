import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { addTeamMember, listTeamMembers, removeTeamMember } from "./team-members.ts";
import { changeTeam, createTeam, deleteTeam, getTeam, listTeams } from "./teams.ts";

/** Teams of a workspace; a part of the table in `endpoints/index.ts`. */
export const teamEndpoints: readonly Endpoint<Dependencies>[] = [
  createTeam,
  listTeams,
  getTeam,
  changeTeam,
  deleteTeam,
  listTeamMembers,
  addTeamMember,
  removeTeamMember,
];
