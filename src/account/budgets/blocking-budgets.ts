import { dayMs } from "../../platform/lib/clock.ts";
import { periodAt, type Budget } from "./budget.ts";

/** What a request counts for: its workspace, keys and user, and the models and providers that cost credits. */
export interface Spender {
  keyId: string;
  parentId: string | undefined;
  userId: string;
  models: readonly string[];
  providers: readonly string[];
}

/** A blocking budget in the period of a day. */
export interface BudgetBound {
  budget: Budget;
  /** Names the sum that the budget bounds: `tag~first day~day after the last`. Budgets of one subject and period share it. */
  counter: string;
}

const tag = (scope: Budget["scope"], subject: string): string =>
  `${scope}:${encodeURIComponent(subject).replaceAll("~", "%7E")}`;
const workspaceTag = "workspace";
const tagOf = ({ scope, subject }: Pick<Budget, "scope" | "subject">): string =>
  subject === null ? workspaceTag : tag(scope, subject);

/**
 * The subjects of budgets that a request counts for.
 * @example budgetTags({ keyId: "key_1", userId: "usr_1", models: ["acme/large"], ... })
 * // ["workspace", "key:key_1", "user:usr_1", "model:acme%2Flarge"]
 */
export const budgetTags = ({ keyId, parentId, userId, models, providers }: Spender): string[] => [
  workspaceTag,
  tag("key", keyId),
  ...(parentId === undefined ? [] : [tag("key", parentId)]),
  tag("user", userId),
  ...new Set(models.map((model) => tag("model", model))),
  ...new Set(providers.map((provider) => tag("provider", provider))),
];

/** Budgets that bound holds, in memory: a request of a workspace without any costs one look-up. */
export class BlockingBudgets {
  /** Called with the workspace whose budgets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byWorkspace = new Map<string, readonly Budget[]>();

  /** Whether a workspace has any. */
  has(workspaceId: string): boolean {
    return this.byWorkspace.has(workspaceId);
  }

  /** Those that bound what counts for some of the tags on a day, counted from the epoch. */
  boundsOf(workspaceId: string, tags: readonly string[], day: number): BudgetBound[] {
    return (this.byWorkspace.get(workspaceId) ?? [])
      .filter((budget) => tags.includes(tagOf(budget)))
      .map((budget) => ({ budget, counter: counterOf(budget, day) }));
  }

  /** Puts a budget in force, or takes it out of force where it does not block. */
  put(budget: Budget): void {
    const others = (this.byWorkspace.get(budget.workspaceId) ?? []).filter(
      ({ id }) => id !== budget.id,
    );
    this.replaceWorkspace(
      budget.workspaceId,
      budget.action === "block" ? [...others, budget] : others,
    );
    this.onChange(budget.workspaceId);
  }

  remove({ id, workspaceId }: Budget): void {
    this.replaceWorkspace(
      workspaceId,
      (this.byWorkspace.get(workspaceId) ?? []).filter((budget) => budget.id !== id),
    );
    this.onChange(workspaceId);
  }

  /** Puts a workspace's blocking budgets in place of those that it had. */
  replaceWorkspace(workspaceId: string, budgets: readonly Budget[]): void {
    if (budgets.length === 0) this.byWorkspace.delete(workspaceId);
    else this.byWorkspace.set(workspaceId, budgets);
  }
}

/** The name of the sum that a budget bounds on a day. */
export function counterOf(
  budget: Pick<Budget, "scope" | "subject" | "period">,
  day: number,
): string {
  const { startMs, endMs } = periodAt(budget.period, day * dayMs);
  return `${tagOf(budget)}~${startMs / dayMs}~${endMs / dayMs}`;
}

/** What the name of a sum says. */
export function readCounter(counter: string): { tag: string; firstDay: number; endDay: number } {
  const [name = "", firstDay, endDay] = counter.split("~");
  return { tag: name, firstDay: Number(firstDay), endDay: Number(endDay) };
}
