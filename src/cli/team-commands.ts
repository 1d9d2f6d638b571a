import { withAccount } from "./gateway-api.ts";
import type { CommandContext } from "./terminal.ts";

/** A team as the API answers with it. */
interface TeamRecord {
  id: string;
  name: string;
  limit: number | null;
  period: string;
  spent: number;
  remaining: number | null;
  members: number;
  keys: number;
  allowed_models: readonly string[] | null;
}

const dollars = (amount: number | null): string => (amount === null ? "no bound" : `$${amount}`);
const pathOf = (team: string): string => `/teams/${encodeURIComponent(team)}`;

/** Shows teams as a table, with their budgets. */
function showTable({ terminal }: CommandContext, rows: readonly TeamRecord[]): void {
  terminal.table(rows, [
    ["ID", ({ id }) => id],
    ["NAME", ({ name }) => name],
    ["LIMIT", ({ limit, period }) => (limit === null ? "-" : `${dollars(limit)} ${period}`)],
    ["SPENT", ({ spent }) => dollars(spent)],
    ["LEFT", ({ remaining }) => dollars(remaining)],
    ["MEMBERS", ({ members }) => String(members)],
    ["KEYS", ({ keys }) => String(keys)],
    ["MODELS", ({ allowed_models: models }) => models?.join(", ") ?? "all"],
  ]);
}

/** Lists the teams of the workspace. */
export async function listTeams(context: CommandContext): Promise<void> {
  const { data } = (await withAccount(context, (api) => api.ask("GET", "/teams"))) as {
    data: TeamRecord[];
  };
  if (context.terminal.result(data)) return;
  if (data.length === 0)
    return context.terminal.line(
      "There are no teams. Create one with: switchyard teams create NAME",
    );
  showTable(context, data);
}

/** Shows a team. */
export async function showTeam(context: CommandContext, team: string): Promise<void> {
  const found = (await withAccount(context, (api) =>
    api.ask("GET", pathOf(team)),
  )) as unknown as TeamRecord;
  if (!context.terminal.result(found)) showTable(context, [found]);
}

/** The options of a new team. */
interface NewTeamOptions {
  limit?: number;
  period?: string;
  zone?: string;
  models?: readonly string[];
}

/** Creates a team. */
export async function createTeam(
  context: CommandContext,
  name: string,
  { limit, period, zone, models }: NewTeamOptions,
): Promise<void> {
  const made = (await withAccount(context, (api) =>
    api.ask("POST", "/teams", {
      name,
      ...(limit !== undefined && { limit }),
      ...(period !== undefined && { period }),
      ...(zone !== undefined && { time_zone: zone }),
      ...(models !== undefined && { allowed_models: models }),
    }),
  )) as unknown as TeamRecord;
  if (!context.terminal.result(made)) showTable(context, [made]);
}

/** Adds a person of the workspace to a team. */
export async function addToTeam(
  context: CommandContext,
  { team, email }: { team: string; email: string },
): Promise<void> {
  const member = await withAccount(context, (api) =>
    api.ask("POST", `${pathOf(team)}/members`, { email }),
  );
  if (!context.terminal.result(member)) context.terminal.line(`${email} is in the team ${team}.`);
}
