import { z } from "zod";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, forSessions, nameField, sessionOf } from "./account-fields.ts";
import { workspaceObject, workspaceObjectSchema } from "./people-object.ts";
import { type Role, managesPeople } from "../../identity/people/roles.ts";

/**
 * Returns the workspaces that a user may enter, the personal one first, with their role in each.
 */
export async function workspacesOf(
  { people, directory }: Pick<Dependencies, "people" | "directory">,
  userId: string,
): Promise<{ workspace: Workspace; role: Role }[]> {
  const [ownId, organizations] = await Promise.all([
    people.sessions.personalWorkspaceId(userId),
    people.organizations.of(userId),
  ]);
  const places = [
    ...(ownId === undefined ? [] : [{ id: ownId, role: "owner" as const }]),
    ...organizations.map(({ workspaceId: id, role }) => ({ id, role })),
  ];
  return places.flatMap(({ id, role }) => {
    const workspace = directory.workspace(id);
    return workspace === undefined ? [] : [{ workspace, role }];
  });
}

export const listWorkspaces = defineEndpoint({
  ...forSessions,
  method: "GET",
  path: "/workspaces",
  anywhere: true,
  summary: "List the workspaces of the user, the personal one first.",
  response: () => z.object({ object: z.literal("list"), data: z.array(workspaceObjectSchema()) }),
  async handle(context, deps: Pick<Dependencies, "directory" | "people">) {
    const places = await workspacesOf(deps, sessionOf(context).user.id);
    return context.json({
      object: "list",
      data: places.map(({ workspace, role }) => workspaceObject(workspace, role)),
    });
  },
});

const nameSchema = z.object({ name: nameField });

export const changeWorkspace = defineEndpoint({
  ...forSessions,
  method: "PATCH",
  path: "/workspaces/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Rename a workspace.",
  body: nameSchema,
  response: workspaceObjectSchema,
  async handle(context, deps: Pick<Dependencies, "directory" | "people" | "workspaceEditor">) {
    const place = (await workspacesOf(deps, sessionOf(context).user.id)).find(
      ({ workspace }) => workspace.id === context.param("id"),
    );
    if (place === undefined)
      throw new GatewayError(
        "not_found",
        "There is no such workspace among yours. GET /workspaces lists them.",
      );
    if (!managesPeople(place.role))
      throw new GatewayError("forbidden", "Only owners and admins may rename a workspace.");
    const renamed = await deps.workspaceEditor.change(place.workspace.id, {
      name: context.body.name,
    });
    return context.json(workspaceObject(renamed, place.role));
  },
});
