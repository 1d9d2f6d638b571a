import { z } from "zod";
import { budgetPeriods, type Budget } from "../../billing/budgets/budget.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import type { Team, TeamMember } from "../../identity/teams/team-store.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { shownPeriod } from "../account/budget-object.ts";
import type { Dependencies } from "../dependencies.ts";

/** The public record of a team. */
export const teamSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("team"),
      name: z.string().describe("Its name, which no other team of the workspace has."),
      allowed_models: z
        .array(z.string())
        .nullable()
        .describe("The models that its keys may use, within their own lists; null: all."),
      limit: z
        .number()
        .nullable()
        .describe("USD that its keys may spend together in a period; null without a bound."),
      period: z.enum(budgetPeriods).describe("The period that is counted."),
      reset_day: z
        .int()
        .nullable()
        .describe("Day of the week or month on which the period starts again; null for others."),
      time_zone: z.string().describe("Time zone in which its periods begin."),
      spent: z.number().describe("USD that its keys spent in the period."),
      remaining: z.number().nullable().describe("USD left; null without a bound."),
      period_start: z.string(),
      period_end: z.string(),
      budget_id: z
        .string()
        .nullable()
        .describe("Id of its budget, for alerts (PATCH /budgets/{id}); null without a bound."),
      members: z.int().describe("Number of members."),
      keys: z.int().describe("Number of keys, without those that they created."),
      created_at: z.string(),
      updated_at: z.string().nullable(),
    })
    .meta({ id: "Team" }),
);

type Services = Pick<Dependencies, "budgets" | "teamStore" | "llmKeys">;

/** Returns what a team without a budget of its own is counted by: its calendar month. */
const monthOf = ({ id, workspaceId, name, createdAtMs }: Team): Budget => ({
  id,
  workspaceId,
  name,
  scope: "team",
  subject: id,
  period: "monthly",
  timeZone: null,
  action: "alert",
  limitNano: 0n,
  thresholds: [],
  emails: [],
  webhookUrl: null,
  secretVersion: 0,
  createdAtMs,
  updatedAtMs: null,
});

/** Returns the keys of teams, without those that they created. */
export const keysIn = (keys: readonly LlmKey[], { id }: Pick<Team, "id">): LlmKey[] =>
  keys.filter(({ teamId }) => teamId === id);

/** Returns the records of teams of one workspace. */
export async function teamObjects(
  deps: Services,
  workspaceId: string,
  teams: readonly Team[],
): Promise<AnswerOf<typeof teamSchema>[]> {
  const [members, keys, budgets] = await Promise.all([
    deps.teamStore.members(
      workspaceId,
      teams.map(({ id }) => id),
    ),
    deps.llmKeys.list(workspaceId, { includeDisabled: true }),
    deps.budgets.editor.list(workspaceId),
  ]);
  const byId = new Map(budgets.map((budget) => [budget.id, budget]));
  return Promise.all(
    teams.map(async (team) => {
      const budget = byId.get(team.budgetId ?? "");
      const { span, spentNano } = await deps.budgets.watch.spentOf(budget ?? monthOf(team));
      return {
        id: team.id,
        object: "team" as const,
        name: team.name,
        allowed_models: team.allowedModels && [...team.allowedModels],
        ...boundOf(budget, spentNano),
        spent: usdFromNano(spentNano),
        period_start: new Date(span.startMs).toISOString(),
        period_end: new Date(span.endMs).toISOString(),
        members: members.filter(({ teamId }) => teamId === team.id).length,
        keys: keysIn(keys, team).length,
        created_at: new Date(team.createdAtMs).toISOString(),
        updated_at: isoOrNull(team.updatedAtMs),
      };
    }),
  );
}

/** Returns what bounds a team, in the form of its record. */
function boundOf(budget: Budget | undefined, spentNano: bigint) {
  const left = (budget?.limitNano ?? 0n) - spentNano;
  return {
    ...shownPeriod(budget?.period ?? "monthly"),
    time_zone: budget?.timeZone ?? "UTC",
    limit: budget === undefined ? null : usdFromNano(budget.limitNano),
    remaining: budget === undefined ? null : usdFromNano(left > 0n ? left : 0n),
    budget_id: budget?.id ?? null,
  };
}

/** Returns the record of one team. */
export async function teamObject(
  deps: Services,
  team: Team,
): Promise<AnswerOf<typeof teamSchema> | undefined> {
  return (await teamObjects(deps, team.workspaceId, [team]))[0];
}

/** The public record of a member of a team. */
export const teamMemberSchema = lazily(() =>
  z
    .object({
      object: z.literal("team_member"),
      team_id: z.string().describe("Id of the team."),
      user_id: z.string(),
      name: z.string(),
      email: z.string(),
      joined_at: z.string(),
    })
    .meta({ id: "TeamMember" }),
);

/** Returns the record of a member of a team. */
export const teamMemberObject = (member: TeamMember): AnswerOf<typeof teamMemberSchema> => ({
  object: "team_member",
  team_id: member.teamId,
  user_id: member.userId,
  name: member.name,
  email: member.email,
  joined_at: new Date(member.joinedAtMs).toISOString(),
});
