import { withAccount } from "./gateway-api.ts";
import type { CommandContext } from "./terminal.ts";

/** A run as the API answers with it. */
interface RunRecord {
  id: string;
  name: string;
  limit: number;
  spent: number;
  remaining: number;
  requests: number;
  max_requests: number | null;
  status: string;
  expires_at: string;
}

/** A run with the runs in it. */
interface RunTree extends RunRecord {
  runs: RunTree[];
}

const dollars = (amount: number): string => `$${amount}`;
const requestsOf = ({ requests, max_requests: most }: RunRecord): string =>
  most === null ? String(requests) : `${requests} of ${most}`;
const pathOf = (id: string): string => `/runs/${encodeURIComponent(id)}`;

/** Shows runs as a table; each with its depth in the tree. */
function showTable(
  { terminal }: CommandContext,
  rows: readonly { run: RunRecord; depth: number }[],
): void {
  terminal.table(rows, [
    ["ID", ({ run }) => run.id],
    ["NAME", ({ run, depth }) => "  ".repeat(depth) + run.name],
    ["SPENT", ({ run }) => dollars(run.spent)],
    ["LIMIT", ({ run }) => dollars(run.limit)],
    ["LEFT", ({ run }) => dollars(run.remaining)],
    ["REQUESTS", ({ run }) => requestsOf(run)],
    ["STATE", ({ run }) => run.status],
  ]);
}

/** Lists the newest runs of the workspace. */
export async function listRuns(context: CommandContext): Promise<void> {
  const { data } = (await withAccount(context, (api) => api.ask("GET", "/runs?limit=100"))) as {
    data: RunRecord[];
  };
  if (context.terminal.result(data)) return;
  if (data.length === 0) return context.terminal.line("There are no runs.");
  showTable(
    context,
    data.map((run) => ({ run, depth: 0 })),
  );
}

const rowsOf = (run: RunTree, depth = 0): { run: RunRecord; depth: number }[] => [
  { run, depth },
  ...run.runs.flatMap((inner) => rowsOf(inner, depth + 1)),
];

/** Shows a run as a tree. */
export async function showRun(context: CommandContext, id: string): Promise<void> {
  const { data } = (await withAccount(context, (api) => api.ask("GET", pathOf(id)))) as {
    data: RunTree;
  };
  if (!context.terminal.result(data)) showTable(context, rowsOf(data));
}

/** Adds money to a run, which is taken from what it was opened with. */
export async function addToRun(context: CommandContext, id: string, usd: number): Promise<void> {
  const { data } = (await withAccount(context, async (api) => {
    const { data: run } = (await api.ask("GET", pathOf(id))) as { data: RunRecord };
    const limit = Number((run.limit + usd).toFixed(9));
    return await api.ask("PATCH", pathOf(id), { limit });
  })) as { data: RunRecord };
  if (!context.terminal.result(data))
    context.terminal.line(
      `The run ${data.name} may spend ${dollars(data.limit)}; ${dollars(data.remaining)} is left.`,
    );
}

/** Ends a run with every run in it. */
export async function endRun(context: CommandContext, id: string): Promise<void> {
  const { data } = (await withAccount(context, (api) =>
    api.ask("PATCH", pathOf(id), { status: "ended" }),
  )) as { data: RunRecord };
  if (!context.terminal.result(data))
    context.terminal.line(`The run ${data.name} has ended. It spent ${dollars(data.spent)}.`);
}
