import { z } from "zod";
import { roles } from "../../account/people/role.ts";
import {
  keysMadeBy,
  revokedKinds,
  revokeKeysMadeBy,
  type MadeKeys,
  type RevokedKind,
} from "../../account/workspaces/revoke-credentials.ts";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { endConnectionsOf } from "../consent/tell-connection.ts";
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
    return context.json({
      object: "list",
      data: (await people.organizations.members(id)).map(memberObject),
    });
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
  description:
    "Admins make and unmake admins and members; owners alone make and unmake owners. The last owner stays one.",
  body: roleSchema,
  response: memberObjectSchema,
  async handle(context, { people }) {
    context.changedIn = (await people.organizations.find(standingOf(context))).workspaceId;
    const change = { member: context.param("user_id"), role: context.body.role };
    return context.json(
      memberObject(await people.organizations.changeRole(standingOf(context), change)),
    );
  },
});

const revokeField = z
  .enum(revokedKinds, `must be one of ${revokedKinds.join(", ")}`)
  .optional()
  .describe(
    "Which keys that this person made in the organisation end: management keys, all of them, or none.",
  );
const removalSchema = z.object({ revoke_keys: revokeField });

const madeKeySchema = z.object({
  object: z.enum(["llm_key", "management_key"]),
  id: z.string(),
  hash: z.string().optional().describe("Of an LLM key: what its paths name."),
  name: z.string(),
  label: z.string(),
  created_at: z.string(),
});

const madeKeyObjects = ({ llmKeys, managementKeys }: MadeKeys): z.infer<typeof madeKeySchema>[] => [
  ...managementKeys.map(({ id, name, label, createdAtMs }) => ({
    object: "management_key" as const,
    id,
    name,
    label,
    created_at: new Date(createdAtMs).toISOString(),
  })),
  ...llmKeys.map(({ id, hash, name, label, createdAtMs }) => ({
    object: "llm_key" as const,
    id,
    hash,
    name,
    label,
    created_at: new Date(createdAtMs).toISOString(),
  })),
];

/** Who leaves may not keep what opens the organisation; whoever removes others knows what they do. */
function revokedKindOf(
  { body, query }: RequestContext<z.infer<typeof removalSchema>>,
  leaves: boolean,
): RevokedKind {
  const which =
    body.revoke_keys ??
    checkBody(removalSchema, Object.fromEntries(query)).revoke_keys ??
    "management";
  if (which !== "none" || !leaves) return which;
  throw new GatewayError(
    "forbidden",
    "revoke_keys: none is for owners and admins who remove somebody else.",
    { param: "revoke_keys" },
  );
}

/** Removes somebody; where a removal was cut off before their keys ended, its repetition ends them. */
async function takeOut(
  deps: Dependencies,
  standing: ReturnType<typeof standingOf>,
  { userId, workspaceId }: { userId: string; workspaceId: string },
): Promise<void> {
  try {
    await deps.people.organizations.remove(standing, userId);
  } catch (error) {
    const { llmKeys, managementKeys } = await keysMadeBy(deps, { workspaceId, userId });
    const isUnfinished =
      error instanceof GatewayError &&
      error.code === "not_found" &&
      llmKeys.length + managementKeys.length > 0;
    if (!isUnfinished) throw error;
  }
}

/** Removes a member, or lets one leave; their management keys end with them, other keys belong to the organisation and stay. */
export const removeMember = defineEndpoint<Dependencies, z.infer<typeof removalSchema>>({
  ...forSessions,
  method: "DELETE",
  path: "/organizations/:id/members/:user_id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Remove a member, or leave.",
  description:
    "Sessions are out of the workspace with their next request. Of the keys that the person made there, management keys are " +
    "revoked unless revoke_keys, in the body or the query, says otherwise. keys_in_force lists what still works.",
  query: removalSchema,
  body: removalSchema,
  bodyOptional: true,
  response: z.object({
    deleted: z.literal(true),
    user_id: z.string(),
    revoked_keys: z.array(madeKeySchema),
    keys_in_force: z.array(madeKeySchema),
  }),
  async handle(context, deps) {
    const userId = context.param("user_id");
    const standing = standingOf(context);
    const which = revokedKindOf(context, userId === standing.userId);
    const { workspaceId } = await deps.people.organizations.find(standing);
    context.changedIn = workspaceId;
    await takeOut(deps, standing, { userId, workspaceId });
    await endConnectionsOf(context, deps, {
      workspaceId,
      userId,
      reason: "its person is no longer a member",
    });
    const { revoked, left } = await revokeKeysMadeBy(deps, { workspaceId, userId, which });
    return context.json({
      deleted: true,
      user_id: userId,
      revoked_keys: madeKeyObjects(revoked),
      keys_in_force: madeKeyObjects(left),
    });
  },
});
