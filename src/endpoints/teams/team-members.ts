import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { emailField } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { teamMemberObject, teamMemberSchema } from "./team-object.ts";
import { changingTeams, readingTeams, teamOfPath } from "./teams.ts";

export const listTeamMembers = defineEndpoint({
  ...readingTeams,
  method: "GET",
  path: "/teams/:id/members",
  summary: "List the members of a team.",
  description: "In the order in which they joined. People who left the organisation are left out.",
  response: () => z.object({ object: z.literal("list"), data: z.array(teamMemberSchema()) }),
  async handle(context, deps: Dependencies) {
    const members = await deps.teamEditor.members(await teamOfPath(context, deps));
    return context.json({ object: "list", data: members.map(teamMemberObject) });
  },
});

const newMemberSchema = z.strictObject({
  user_id: z.string().min(1).max(100).optional().describe("Id of a person of the workspace."),
  email: emailField.optional().describe("Address of that person, in place of the id."),
});

export const addTeamMember = defineEndpoint({
  ...changingTeams,
  method: "POST",
  idempotent: true,
  path: "/teams/:id/members",
  summary: "Add a person of the workspace to a team.",
  description:
    "A person with the role member who is in a team creates keys in their teams alone. One who is in the team already stays as before.",
  body: newMemberSchema,
  response: teamMemberSchema,
  async handle(context, deps: Dependencies) {
    const { user_id: userId, email } = context.body;
    if ((userId === undefined) === (email === undefined))
      throw badField("user_id", "send either user_id or email.");
    const team = await teamOfPath(context, deps);
    context.changed = team.id;
    const member = await deps.teamEditor.addMember(
      team,
      email === undefined
        ? { param: "user_id", value: userId ?? "" }
        : { param: "email", value: email },
    );
    return context.json(teamMemberObject(member));
  },
});

export const removeTeamMember = defineEndpoint({
  ...changingTeams,
  method: "DELETE",
  path: "/teams/:id/members/:user_id",
  summary: "Take a person out of a team.",
  description: "Keys that the person created stay in the team.",
  response: () => z.object({ deleted: z.literal(true), user_id: z.string() }),
  async handle(context, deps: Dependencies) {
    const team = await teamOfPath(context, deps);
    const userId = context.param("user_id");
    context.changed = team.id;
    await deps.teamEditor.removeMember(team, userId);
    return context.json({ deleted: true, user_id: userId });
  },
});
