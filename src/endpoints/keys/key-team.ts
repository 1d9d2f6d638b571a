import type { AccountCaller } from "../../identity/keys/caller.ts";
import { scopesHeld } from "../../identity/keys/caller.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import { coversScope, type Scope } from "../../identity/keys/scopes.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** The scope that changes teams, and moves keys between them: else a key could leave its budget. */
export const teamScope = "write:security" satisfies Scope;

/** Returns the team of a new key. Throws `not_found` for teams that the workspace does not have. */
export function teamIdOf(
  teamId: string | null,
  { workspace }: Pick<AccountCaller, "workspace">,
  { directory }: Pick<Dependencies, "directory">,
): string | null {
  if (teamId === null || directory.team(teamId)?.workspaceId === workspace.id) return teamId;
  throw new GatewayError("not_found", "team_id: there is no such team. GET /teams lists them.", {
    param: "team_id",
  });
}

/**
 * Throws where a key may not move to another team: `not_found` for unknown teams, `bad_request` for
 * child keys, and `insufficient_scope` for callers who may not change teams.
 */
export function assertMayMove(
  key: LlmKey,
  {
    teamId,
    caller,
    deps,
  }: {
    teamId: string | null;
    caller: AccountCaller;
    deps: Pick<Dependencies, "directory">;
  },
): void {
  teamIdOf(teamId, caller, deps);
  if (teamId === (key.teamId ?? null)) return;
  if (key.parentKeyId !== undefined)
    throw badField("team_id", "a child key belongs to the team of its parent. Move that one.");
  if (coversScope(scopesHeld(caller), teamScope)) return;
  throw new GatewayError(
    "insufficient_scope",
    `team_id: moving a key to another team needs the scope ${teamScope}.`,
    {
      param: "team_id",
      metadata: { required_scope: teamScope, granted_scopes: [...scopesHeld(caller)] },
    },
  );
}

/**
 * Throws `forbidden` where a person may only use what belongs to their teams, so that what they open
 * for the whole workspace would pass the limits of those.
 */
export async function assertBoundToNoTeam(
  { workspace, user }: SessionCaller,
  { teamStore }: Pick<Dependencies, "teamStore">,
): Promise<void> {
  const bound = await teamStore.bindingTeams({
    workspaceId: workspace.id,
    userId: user.id,
  });
  if (bound.length === 0) return;
  throw new GatewayError(
    "forbidden",
    "You belong to a team, whose limit bounds your runs. Open this one with a key of the team.",
    { metadata: { team_ids: bound } },
  );
}

/**
 * Throws `forbidden` where a person would get the secret of a key, or of one that it creates, which
 * belongs to no team of theirs: it would pass the limits of those.
 */
export async function assertMayHold(
  caller: AccountCaller,
  key: LlmKey | undefined,
  { teamStore, directory }: Pick<Dependencies, "teamStore" | "directory">,
): Promise<void> {
  if (caller.kind !== "session" || key === undefined) return;
  const { workspace, user } = caller;
  const bound = await teamStore.bindingTeams({ workspaceId: workspace.id, userId: user.id });
  const teamId = key.teamId ?? directory.llmKeyById(key.parentKeyId ?? "")?.teamId;
  if (bound.length === 0 || (typeof teamId === "string" && bound.includes(teamId))) return;
  throw new GatewayError("forbidden", "This key belongs to no team of yours.", {
    metadata: { team_ids: bound },
  });
}
