import type { Kysely } from "kysely";
import { recordColumns, type RowOf } from "../../platform/storage/record-columns.ts";
import type { PeopleTables } from "../people/people-tables.ts";

/** A part of a workspace that has keys, members, models and a budget of its own. */
export interface Team {
  /** A `team_` id. */
  id: string;
  workspaceId: string;
  /** Unique in its workspace. */
  name: string;
  /** Lower-case ids of the models that its keys may use; null allows all. */
  allowedModels: readonly string[] | null;
  /** The budget that bounds what its keys spend; null where it has none of its own. */
  budgetId: string | null;
  createdAtMs: number;
  updatedAtMs: number | null;
}

/** A person in a team. */
export interface TeamMember {
  teamId: string;
  userId: string;
  name: string;
  email: string;
  joinedAtMs: number;
}

/** The tables of teams, with those of the people in them and of their keys. */
export interface TeamTables extends PeopleTables {
  teams: RowOf<Team> & { removed_at_ms: number | null };
  team_members: { team_id: string; user_id: string; joined_at_ms: number };
  llm_keys: { id: string; workspace_id: string; team_id: string | null };
}

const { fromRow, rowOf } = recordColumns<Team>({
  id: "plain",
  workspaceId: "plain",
  name: "plain",
  allowedModels: "json",
  budgetId: "plain",
  createdAtMs: "plain",
  updatedAtMs: "plain",
});

/** A person in a workspace. */
interface Standing {
  workspaceId: string;
  userId: string;
}

/** Stores teams and their members. Removed teams stay as rows, which name old records. */
export class TeamStore {
  constructor(private readonly database: Kysely<TeamTables>) {}

  /** Returns the teams of all workspaces, or of one, newest first. */
  async list(workspaceId?: string): Promise<Team[]> {
    let query = this.database.selectFrom("teams").selectAll().where("removed_at_ms", "is", null);
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  /** Returns a team of a workspace by its id, or by its name. */
  async find(workspaceId: string, idOrName: string): Promise<Team | undefined> {
    const row = await this.database
      .selectFrom("teams")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("removed_at_ms", "is", null)
      .where((where) => where.or([where("id", "=", idOrName), where("name", "=", idOrName)]))
      .orderBy("id")
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async insert(team: Team): Promise<void> {
    await this.database
      .insertInto("teams")
      .values({ ...rowOf(team), removed_at_ms: null })
      .execute();
  }

  /**
   * Writes the name and the models of a team. Its budget is changed apart (`setBudget`). Returns
   * false where it was removed meanwhile.
   */
  async replace(team: Team): Promise<boolean> {
    const { name, allowed_models, updated_at_ms } = rowOf(team);
    const { numUpdatedRows } = await this.database
      .updateTable("teams")
      .set({ name, allowed_models, updated_at_ms })
      .where("id", "=", team.id)
      .where("removed_at_ms", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /**
   * Gives a team a budget in place of the one that it is known with. Returns false where it has
   * another by now, or was removed.
   */
  async setBudget(
    { id, budgetId: known }: Pick<Team, "id" | "budgetId">,
    { budgetId, nowMs }: { budgetId: string | null; nowMs: number },
  ): Promise<boolean> {
    const row = await this.database
      .updateTable("teams")
      .set({ budget_id: budgetId, updated_at_ms: nowMs })
      .where("id", "=", id)
      .where("removed_at_ms", "is", null)
      .where("budget_id", known === null ? "is" : "=", known)
      .returning("id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Removes a team with its members, and takes the keys that are left out of it. */
  remove({ id }: Pick<Team, "id">, nowMs: number): Promise<void> {
    return this.database.transaction().execute(async (transaction) => {
      await transaction
        .updateTable("llm_keys")
        .set({ team_id: null })
        .where("team_id", "=", id)
        .execute();
      await transaction.deleteFrom("team_members").where("team_id", "=", id).execute();
      await transaction
        .updateTable("teams")
        .set({ removed_at_ms: nowMs })
        .where("id", "=", id)
        .execute();
    });
  }

  /** Returns the members of some teams who are still people of the workspace, by the time of joining. */
  async members(workspaceId: string, teamIds: readonly string[]): Promise<TeamMember[]> {
    if (teamIds.length === 0) return [];
    const rows = await this.database
      .selectFrom("team_members as member")
      .innerJoin("users as user", "user.id", "member.user_id")
      .innerJoin("workspaces as workspace", (join) => join.on("workspace.id", "=", workspaceId))
      .leftJoin("organization_members as standing", (join) =>
        join
          .onRef("standing.organization_id", "=", "workspace.organization_id")
          .onRef("standing.user_id", "=", "member.user_id"),
      )
      .select([
        "member.team_id as teamId",
        "user.id as userId",
        "user.name as name",
        "user.email as email",
        "member.joined_at_ms as joinedAtMs",
      ])
      .where("member.team_id", "in", teamIds)
      .where((where) =>
        where.or([
          where("standing.user_id", "is not", null),
          where("workspace.owner_user_id", "=", where.ref("member.user_id")),
        ]),
      )
      .orderBy("member.joined_at_ms")
      .orderBy("member.user_id")
      .execute();
    return rows.map((row) => ({ ...row, joinedAtMs: Number(row.joinedAtMs) }));
  }

  /** Adds a person to a team. One who is in it stays as before. */
  async addMember({ teamId, userId, nowMs }: { teamId: string; userId: string; nowMs: number }) {
    await this.database
      .insertInto("team_members")
      .values({ team_id: teamId, user_id: userId, joined_at_ms: nowMs })
      .onConflict((conflict) => conflict.columns(["team_id", "user_id"]).doNothing())
      .execute();
  }

  /** Takes a person out of a team. Returns whether they were in it. */
  async removeMember({ teamId, userId }: { teamId: string; userId: string }): Promise<boolean> {
    const row = await this.database
      .deleteFrom("team_members")
      .where("team_id", "=", teamId)
      .where("user_id", "=", userId)
      .returning("user_id")
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Takes a person out of every team of a workspace. */
  async removeFromAll({ workspaceId, userId }: Standing): Promise<void> {
    await this.database
      .deleteFrom("team_members")
      .where("user_id", "=", userId)
      .where("team_id", "in", (where) =>
        where.selectFrom("teams").select("id").where("workspace_id", "=", workspaceId),
      )
      .execute();
  }

  /**
   * Returns the ids of the teams that a person's new keys have to belong to, the one joined first
   * at the beginning; none for owners and admins, and for members who are in no team.
   */
  async bindingTeams({ workspaceId, userId }: Standing): Promise<string[]> {
    const rows = await this.database
      .selectFrom("team_members as member")
      .innerJoin("teams as team", "team.id", "member.team_id")
      .innerJoin("workspaces as workspace", "workspace.id", "team.workspace_id")
      .innerJoin("organization_members as standing", (join) =>
        join
          .onRef("standing.organization_id", "=", "workspace.organization_id")
          .onRef("standing.user_id", "=", "member.user_id"),
      )
      .select("team.id")
      .where("member.user_id", "=", userId)
      .where("team.workspace_id", "=", workspaceId)
      .where("standing.role", "=", "member")
      .orderBy("member.joined_at_ms")
      .orderBy("team.id")
      .execute();
    return rows.map(({ id }) => id);
  }
}
