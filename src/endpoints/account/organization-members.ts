import { z } from "zod";
import { roles } from "../../account/people/role.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { standingOf } from "./organization.ts";
import { forSessions } from "./people-fields.ts";
import { memberObject, memberObjectSchema } from "./people-object.ts";

/** Lists the members of an organisation. */
export const listMembers = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "GET",
  path: "/organizations/:id/members",
  summary: "List the members of an organisation.",
  response: z.object({ object: z.literal("list"), data: z.array(memberObjectSchema) }),
  async handle(context, { people }) {
    const { id } = await people.organizations.find(standingOf(context));
    return context.json({ object: "list", data: (await people.organizations.members(id)).map(memberObject) });
  },
});

const roleSchema = z.object({ role: z.enum(roles, `must be one of ${roles.join(", ")}`) });

/** Changes what a member is; in force with their next request. */
export const changeMember = defineEndpoint<Dependencies, z.infer<typeof roleSchema>>({
  ...forSessions,
  method: "PATCH",
  path: "/organizations/:id/members/:user_id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the role of a member.",
  description: "Admins make and unmake admins and members; owners alone make and unmake owners. The last owner stays one.",
  body: roleSchema,
  response: memberObjectSchema,
  async handle(context, { people }) {
    context.changedIn = (await people.organizations.find(standingOf(context))).workspaceId;
    const change = { member: context.param("user_id"), role: context.body.role };
    return context.json(memberObject(await people.organizations.changeRole(standingOf(context), change)));
  },
});

/** Removes a member, or lets one leave; keys that they made belong to the organisation and stay. */
export const removeMember = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id/members/:user_id",
  summary: "Remove a member, or leave.",
  response: z.object({ deleted: z.literal(true), user_id: z.string() }),
  async handle(context, { people }) {
    const userId = context.param("user_id");
    context.changedIn = (await people.organizations.find(standingOf(context))).workspaceId;
    await people.organizations.remove(standingOf(context), userId);
    return context.json({ deleted: true, user_id: userId });
  },
});
