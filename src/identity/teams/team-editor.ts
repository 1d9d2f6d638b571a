import type { Clock } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import type { Team, TeamMember, TeamStore } from "./team-store.ts";

/** The most teams of a workspace: each has a budget, of which there are as many. */
const teamsMax = 100;
/** The most members of a team. */
const membersMax = 1_000;

/** The fields of a team that its workspace sets. */
type TeamFields = Pick<Team, "name" | "allowedModels">;

interface EditorOptions {
  store: TeamStore;
  directory: CredentialDirectory;
  clock: Clock;
  /** Returns the people of a workspace. */
  peopleIn(workspaceId: string): Promise<readonly { id: string; email: string }[]>;
}

const noTeam = (): GatewayError =>
  new GatewayError("not_found", "There is no team with this id. GET /teams lists them.");

/** Creates, changes and removes teams, one change of a workspace's teams at a time. */
export class TeamEditor {
  private readonly mutex = new KeyedMutex();
  /** Longer work on single teams, which makes changes of its own. */
  private readonly turns = new KeyedMutex();

  constructor(private readonly options: EditorOptions) {}

  /** Returns a team by its id or its name. Throws `not_found`, also for teams of other workspaces. */
  async find({ workspaceId, id }: { workspaceId: string; id: string }): Promise<Team> {
    // Postgres rejects a zero byte, which no name has.
    const team = id.includes("\0") ? undefined : await this.options.store.find(workspaceId, id);
    if (team === undefined) throw noTeam();
    return team;
  }

  /** Runs work on a team after all earlier work on it, as that left it. Throws `not_found`. */
  inTurn<Result>(team: Team, work: (team: Team) => Promise<Result>): Promise<Result> {
    return this.turns.run(team.id, async () => work(await this.find(team)));
  }

  /** Creates a team without a budget. Throws `conflict` for a name that is taken, and for too many. */
  create(workspaceId: string, fields: TeamFields): Promise<Team> {
    return this.mutex.run(workspaceId, async () => {
      const { store, clock, directory } = this.options;
      const others = await store.list(workspaceId);
      if (others.length >= teamsMax)
        throw new GatewayError("conflict", `The workspace has ${teamsMax} teams. Delete some.`);
      assertFree(fields.name, others);
      const nowMs = clock.nowMs();
      const team: Team = {
        ...fields,
        id: newId("team", nowMs),
        workspaceId,
        budgetId: null,
        createdAtMs: nowMs,
        updatedAtMs: null,
      };
      await store.insert(team);
      directory.putTeam(team);
      return team;
    });
  }

  /** Changes some fields, in force for the next request. Throws `not_found` and `conflict`. */
  change({ workspaceId, id }: Team, changes: Partial<TeamFields>): Promise<Team> {
    return this.mutex.run(workspaceId, async () => {
      const { store, clock, directory } = this.options;
      const team = await this.find({ workspaceId, id });
      if (changes.name !== undefined)
        assertFree(
          changes.name,
          (await store.list(workspaceId)).filter((other) => other.id !== id),
        );
      const changed: Team = { ...team, ...changes, updatedAtMs: clock.nowMs() };
      if (!(await store.replace(changed))) throw noTeam();
      directory.putTeam(changed);
      return changed;
    });
  }

  /**
   * Gives a team a budget in place of the one that it is known with. Returns undefined where another
   * gateway has given it one meanwhile, or removed it.
   */
  setBudget(team: Team, budgetId: string | null): Promise<Team | undefined> {
    return this.mutex.run(team.workspaceId, async () => {
      const { store, clock, directory } = this.options;
      if (!(await store.setBudget(team, { budgetId, nowMs: clock.nowMs() }))) return undefined;
      const changed = await this.find(team);
      directory.putTeam(changed);
      return changed;
    });
  }

  /** Removes a team. The keys that are left in it stay in the workspace, without a team. */
  remove(team: Team): Promise<void> {
    return this.mutex.run(team.workspaceId, async () => {
      const { store, clock, directory } = this.options;
      await store.remove(team, clock.nowMs());
      directory.removeTeam(team);
    });
  }

  /** Returns the members of a team. */
  members({ workspaceId, id }: Team): Promise<TeamMember[]> {
    return this.options.store.members(workspaceId, [id]);
  }

  /**
   * Adds a person of the workspace by their id or address. Throws `bad_request` for others, and
   * `conflict` where the team is full.
   */
  addMember(
    team: Team,
    person: { param: "user_id" | "email"; value: string },
  ): Promise<TeamMember> {
    return this.mutex.run(team.workspaceId, async () => {
      const { store, clock, peopleIn } = this.options;
      const found = (await peopleIn(team.workspaceId)).find((each) =>
        person.param === "email" ? each.email === person.value : each.id === person.value,
      );
      if (found === undefined)
        throw badField(
          person.param,
          "is no person of this workspace. POST /organizations/{id}/invitations invites people.",
        );
      const members = await this.members(team);
      const isMember = members.some(({ userId }) => userId === found.id);
      if (!isMember && members.length >= membersMax)
        throw new GatewayError("conflict", `The team has ${membersMax} members.`);
      await store.addMember({ teamId: team.id, userId: found.id, nowMs: clock.nowMs() });
      const member = (await this.members(team)).find(({ userId }) => userId === found.id);
      if (member === undefined) throw noMember();
      return member;
    });
  }

  /** Takes a person out of a team. Throws `not_found`. */
  async removeMember({ id }: Team, userId: string): Promise<void> {
    if (!mayBeId(userId) || !(await this.options.store.removeMember({ teamId: id, userId })))
      throw noMember();
  }
}

const noMember = (): GatewayError => new GatewayError("not_found", "This team has no such member.");

/** Throws `conflict` where another team has the name. */
function assertFree(name: string, others: readonly Team[]): void {
  const other = others.find((each) => each.name === name);
  if (other === undefined) return;
  throw new GatewayError("conflict", `name: the team ${other.id} has it already.`, {
    param: "name",
    metadata: { team_id: other.id },
  });
}
