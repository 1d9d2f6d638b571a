import { z } from "zod";
import { type Budget, budgetPeriods } from "../../billing/budgets/budget.ts";
import type { BudgetFields } from "../../billing/budgets/budget-editor.ts";
import type { Team } from "../../identity/teams/team-store.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { budgetLimitField, budgetZoneField, limitNano, periodOf } from "../account/budgets.ts";
import type { Dependencies } from "../dependencies.ts";

/** The fields of a team that make up its budget. */
export const teamBudgetFields = {
  limit: budgetLimitField
    .nullish()
    .describe(
      "USD that its keys may spend together in a period, however many requests come at once. Null: no bound.",
    ),
  period: z
    .enum(budgetPeriods, `must be one of ${budgetPeriods.join(", ")}`)
    .optional()
    .describe("Default: monthly."),
  reset_day: z
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .max(31, "must be at most 31")
    .nullish()
    .describe("Day of the month or week (1 is Monday) on which a period begins. Default: 1."),
  time_zone: budgetZoneField,
};

type Fields = z.infer<z.ZodObject<typeof teamBudgetFields>>;

/** Returns whether a change says when the periods of a budget begin. */
const movesPeriod = ({ period, reset_day: day, time_zone: zone }: Fields): boolean =>
  period !== undefined || day !== undefined || zone !== undefined;

/** Throws `bad_request` where a period is given without a limit to count in it. */
export function assertBounded(fields: Fields): void {
  if (!movesPeriod(fields) || typeof fields.limit === "number") return;
  const param = fields.period === undefined ? "limit" : "period";
  throw badField(param, "a period needs a limit. Send limit as well.");
}

const budgetFields = (
  { id, name }: Team,
  { limit, ...fields }: Fields & { limit: number },
): BudgetFields => ({
  name,
  scope: "team",
  subject: id,
  period: periodOf({ ...fields, period: fields.period ?? "monthly" }),
  timeZone: fields.time_zone ?? null,
  action: "block",
  limitNano: limitNano(limit),
  thresholds: [50, 80, 100],
  emails: [],
  webhookUrl: null,
});

/**
 * Gives a team the budget that the fields describe, in place of the one that it has. One without
 * another period keeps its budget, with its alerts. Returns the team.
 */
export async function boundTeam(
  deps: Pick<Dependencies, "budgets" | "teamEditor">,
  { team, fields }: { team: Team; fields: Fields },
): Promise<Team> {
  const { limit } = fields;
  if (limit === undefined) return team;
  // In turn, since a budget that two changes replaced at once would block on beside the new ones.
  return deps.teamEditor.inTurn(team, (current) =>
    replaceBudget(deps, { team: current, fields: { ...fields, limit } }),
  );
}

async function replaceBudget(
  deps: Pick<Dependencies, "budgets" | "teamEditor">,
  { team, fields }: { team: Team; fields: Fields & { limit: number | null } },
): Promise<Team> {
  const { budgets, teamEditor } = deps;
  const { limit } = fields;
  const { workspaceId } = team;
  const known = (await budgets.editor.list(workspaceId)).find(({ id }) => id === team.budgetId);
  const again = async () => replaceBudget(deps, { team: await teamEditor.find(team), fields });
  if (limit !== null && known !== undefined && !movesPeriod(fields)) {
    const changes = { limitNano: limitNano(limit), action: "block" } as const;
    return budgets.editor.change({ workspaceId, id: known.id }, changes).then(
      () => team,
      (error: unknown) => (isGone(error) ? again() : Promise.reject(error)),
    );
  }
  const made =
    limit === null
      ? undefined
      : await budgets.editor
          .create(workspaceId, budgetFields(team, { ...fields, limit }))
          .catch(async (error: unknown) => {
            // Another gateway may have removed the team, which is not found then.
            await teamEditor.find(team);
            throw error;
          });
  const changed = await teamEditor.setBudget(team, made?.id ?? null);
  if (changed === undefined) {
    // Another gateway was first: its budget is the one to replace now.
    if (made !== undefined) await removeBudget(deps, made);
    return again();
  }
  if (known !== undefined) await removeBudget(deps, known);
  return changed;
}

/** Removes every budget that counts a team. */
export async function unboundTeam(
  deps: Pick<Dependencies, "budgets">,
  { id, workspaceId }: Team,
): Promise<void> {
  for (const budget of await deps.budgets.editor.list(workspaceId))
    if (budget.scope === "team" && budget.subject === id) await removeBudget(deps, budget);
}

/** Removes a budget, which another gateway may have removed before. */
async function removeBudget(
  { budgets }: Pick<Dependencies, "budgets">,
  budget: Budget,
): Promise<void> {
  await budgets.editor.remove(budget).catch((error: unknown) => {
    if (!isGone(error)) throw error;
  });
}

const isGone = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === "not_found";
