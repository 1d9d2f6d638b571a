import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import type { Team } from "../../identity/teams/team-store.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { accountBodyBytesMax, nameField, workspaceOf } from "../account/account-fields.ts";
import { descending, pageOf, pageQuery, placeFields, timeRank } from "../account/list-pages.ts";
import type { Dependencies } from "../dependencies.ts";
import { teamScope } from "../keys/key-team.ts";
import { allowedModelsField, allowedModelsOf } from "../keys/llm-key-object.ts";
import { assertBounded, boundTeam, teamBudgetFields, unboundTeam } from "./team-budget.ts";
import { keysIn, teamObject, teamObjects, teamSchema } from "./team-object.ts";

/** The declarations that every route of teams shares. */
const teamRoute = {
  base: "api",
  counting: "at-door",
  tag: "Teams",
  encodeError: encodeContractError,
} as const;
/** Declarations of routes that read teams. */
export const readingTeams = {
  ...teamRoute,
  access: { managementScope: "read:llm-keys", session: true },
} as const;
/** Declarations of routes that change teams: as budgets, they bound what others may spend. */
export const changingTeams = {
  ...teamRoute,
  access: { managementScope: teamScope, session: true },
  bodyBytesMax: accountBodyBytesMax,
} as const;

const modelsField = allowedModelsField
  .nullish()
  .describe("Models that its keys may use, within their own lists. Null: all.");
const newSchema = z.strictObject({
  name: nameField.describe("No other team of the workspace may have it."),
  allowed_models: modelsField,
  ...teamBudgetFields,
});
const changesSchema = newSchema.partial();

/** Returns the team of the path, by its id or its name. Throws `not_found`. */
export const teamOfPath = (
  context: RequestContext<unknown, AccountCaller>,
  { teamEditor }: Pick<Dependencies, "teamEditor">,
): Promise<Team> =>
  teamEditor.find({ workspaceId: workspaceOf(context).id, id: context.param("id") });

export const createTeam = defineEndpoint({
  ...changingTeams,
  method: "POST",
  idempotent: true,
  path: "/teams",
  summary: "Create a team.",
  description:
    "A team is a part of the workspace with keys (team_id of POST /keys), members, models and a limit of its own. A request beyond the " +
    "limit is refused with 402, metadata.reason budget_reached, metadata.budget_scope team. The limit is a budget with scope team, to " +
    "which PATCH /budgets/{id} adds alerts.",
  body: newSchema,
  response: teamSchema,
  async handle(context, deps: Dependencies) {
    const { name, allowed_models: models, ...fields } = context.body;
    assertBounded(fields);
    const made = await deps.teamEditor.create(workspaceOf(context).id, {
      name,
      allowedModels: allowedModelsOf(models),
    });
    context.changed = made.id;
    try {
      const team = await boundTeam(deps, { team: made, fields });
      return context.json(await teamObject(deps, team));
    } catch (error) {
      await deps.teamEditor.remove(made);
      await unboundTeam(deps, made);
      throw error;
    }
  },
});

export const listTeams = defineEndpoint({
  ...readingTeams,
  method: "GET",
  path: "/teams",
  summary: "List teams, newest first.",
  description: "Returns each with what its keys spent in its period and what is left.",
  query: pageQuery,
  response: () =>
    z.object({ object: z.literal("list"), data: z.array(teamSchema()), ...placeFields() }),
  async handle(context, deps: Dependencies) {
    const workspaceId = workspaceOf(context).id;
    const { data, place } = pageOf(
      await deps.teamStore.list(workspaceId),
      checkBody(pageQuery, Object.fromEntries(context.query)),
      {
        idOf: ({ id }) => id,
        order: { rankOf: ({ createdAtMs, id }) => timeRank(createdAtMs, id), compare: descending },
      },
    );
    return context.json({
      object: "list",
      data: await teamObjects(deps, workspaceId, data),
      ...place,
    });
  },
});

export const getTeam = defineEndpoint({
  ...readingTeams,
  method: "GET",
  path: "/teams/:id",
  summary: "Show a team.",
  description: "The id may also be the name.",
  response: teamSchema,
  async handle(context, deps: Dependencies) {
    return context.json(await teamObject(deps, await teamOfPath(context, deps)));
  },
});

/** Changes a team, in force for the next request of its keys. */
export const changeTeam = defineEndpoint({
  ...changingTeams,
  method: "PATCH",
  path: "/teams/:id",
  summary: "Change a team.",
  description:
    "Applies from the next request of its keys. A new limit goes on with what was spent; with `period`, `reset_day` or `time_zone` its " +
    "budget is replaced.",
  body: changesSchema,
  response: teamSchema,
  async handle(context, deps: Dependencies) {
    const { name, allowed_models: models, ...fields } = context.body;
    assertBounded(fields);
    const team = await teamOfPath(context, deps);
    context.changed = team.id;
    const changes = {
      ...(name !== undefined && { name }),
      ...(models !== undefined && { allowedModels: allowedModelsOf(models) }),
    };
    const changed =
      Object.keys(changes).length === 0 ? team : await deps.teamEditor.change(team, changes);
    return context.json(await teamObject(deps, await boundTeam(deps, { team: changed, fields })));
  },
});

const fates = ["delete", "keep"] as const;
const deletionQuery = z.object({
  keys: z
    .enum(fates, "must be delete or keep")
    .optional()
    .describe(
      "What becomes of its keys: `delete` revokes them, `keep` leaves them in the workspace without the team's limit and models. " +
        "Without it, a team that has keys is not deleted.",
    ),
});

/** Deletes a team with its budgets; what becomes of its keys is for the caller to say. */
export const deleteTeam = defineEndpoint({
  ...changingTeams,
  method: "DELETE",
  path: "/teams/:id",
  summary: "Delete a team.",
  description: "Its budgets are deleted too. Records of its requests keep its id.",
  query: deletionQuery,
  response: () =>
    z.object({
      deleted: z.literal(true),
      id: z.string(),
      deleted_keys: z.int().describe("Number of keys that were revoked."),
    }),
  async handle(context, deps: Dependencies) {
    const { keys: fate } = checkBody(deletionQuery, Object.fromEntries(context.query));
    const team = await teamOfPath(context, deps);
    const { workspaceId } = team;
    context.changed = team.id;
    const keys = keysIn(await deps.llmKeys.list(workspaceId, { includeDisabled: true }), team);
    if (keys.length > 0 && fate === undefined)
      throw new GatewayError(
        "conflict",
        `The team has ${keys.length === 1 ? "a key" : `${keys.length} keys`}. ` +
          "Send keys=delete to revoke what it has, or keys=keep to leave that without its limit and models.",
        { param: "keys", metadata: { keys: keys.length } },
      );
    if (fate === "delete")
      for (const { hash } of keys) await deps.llmKeyEditor.remove({ workspaceId, hash });
    await deps.teamEditor.inTurn(team, async () => {
      await deps.teamEditor.remove(team);
      await unboundTeam(deps, team);
    });
    const deleted = fate === "delete" ? keys.length : 0;
    return context.json({ deleted: true, id: team.id, deleted_keys: deleted });
  },
});
