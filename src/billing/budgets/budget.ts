import { dayMs } from "../../platform/kernel/clock.ts";

/** The subjects that a budget can have, beside the values of a tag. */
export const budgetScopes = ["workspace", "key", "user", "model", "provider", "customer"] as const;
/** Matches the scope of a tag: a member of a request's metadata. */
export const tagScopePattern = /^tag:[\w.-]{1,60}$/;
export type BudgetScope = (typeof budgetScopes)[number] | `tag:${string}`;

/** The subject of a budget that bounds each customer, or each value of a tag, by itself. */
export const eachSubject = "*";

/** Returns whether a scope is counted by what requests say of their sender. */
export const isSenderScope = (scope: BudgetScope): scope is "customer" | `tag:${string}` =>
  scope === "customer" || scope.startsWith("tag:");

/** A customer or a tag of a request, with its value. */
export interface Sender {
  scope: BudgetScope;
  subject: string;
}

/**
 * The actions of a budget: `alert` only reports spending, `block` also refuses requests that would
 * exceed the limit.
 */
export const budgetActions = ["alert", "block"] as const;
export type BudgetAction = (typeof budgetActions)[number];

/** The calendar periods (UTC) after which a budget starts again. Weeks begin on Monday. */
export const budgetPeriods = ["daily", "weekly", "monthly"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** The recipients of a budget's alerts. */
export interface BudgetAlerts {
  /** Addresses of people in the workspace. */
  emails: readonly string[];
  webhookUrl: string | null;
}

/** A spending limit for a period, which the action `block` enforces. */
export interface Budget extends BudgetAlerts {
  /** A `bud_` id. */
  id: string;
  workspaceId: string;
  name: string;
  scope: BudgetScope;
  /** The id of the key, user, model or provider; null for the workspace. */
  subject: string | null;
  period: BudgetPeriod;
  action: BudgetAction;
  limitNano: bigint;
  /** Percentages of the limit at which an alert is sent, in ascending order. */
  thresholds: readonly number[];
  /** The version of the secret that signs webhooks; each rotation increments it. */
  secretVersion: number;
  createdAtMs: number;
  updatedAtMs: number | null;
}

/** A time range. The end is exclusive. */
export interface Span {
  startMs: number;
  endMs: number;
}

/** Returns the days since Monday of a day since the epoch: 1970-01-01 was a Thursday. */
const daysSinceMonday = (day: number): number => (day + 3) % 7;

/** Returns the period that contains a wall time. */
export function periodAt(period: BudgetPeriod, nowMs: number): Span {
  const day = Math.floor(nowMs / dayMs);
  if (period === "monthly") {
    const date = new Date(nowMs);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { startMs: Date.UTC(year, month, 1), endMs: Date.UTC(year, month + 1, 1) };
  }
  const first = period === "daily" ? day : day - daysSinceMonday(day);
  return { startMs: first * dayMs, endMs: (first + (period === "daily" ? 1 : 7)) * dayMs };
}

/** Returns the thresholds that an amount has reached. */
export const reachedThresholds = (
  { limitNano, thresholds }: Pick<Budget, "limitNano" | "thresholds">,
  spentNano: bigint,
): number[] => thresholds.filter((percent) => spentNano * 100n >= limitNano * BigInt(percent));

/**
 * The parties that a request's spending counts towards: its workspace, keys and user, and the
 * models and providers that cost credits.
 */
interface Spender {
  /** The key, and those that it was created with. */
  keyIds: readonly string[];
  userId: string;
  models: readonly string[];
  providers: readonly string[];
  /** The customer and the tags that budgets count; absent means none. */
  senders?: readonly Sender[];
}

/** A blocking budget in the period of a day. */
export interface BudgetBound {
  budget: Budget;
  /**
   * The name of the sum that the budget bounds: `tag~first day~day after the last`. Budgets of one
   * subject and period share it.
   */
  counter: string;
}

/** The tags by scope and subject, kept since most requests use the same few. */
const knownTags = new Map<string, string>();
const knownTagsMax = 10_000;

function tag(scope: Budget["scope"], subject: string): string {
  const name = `${scope}:${subject}`;
  let text = knownTags.get(name);
  if (text === undefined) {
    if (knownTags.size >= knownTagsMax) knownTags.clear();
    text = `${scope.replace(":", "%3A")}:${encodeURIComponent(subject).replaceAll("~", "%7E")}`;
    knownTags.set(name, text);
  }
  return text;
}

const tags = (scope: Budget["scope"], [first, ...others]: readonly string[]): string[] => {
  if (first === undefined) return [];
  if (others.length === 0) return [tag(scope, first)];
  return [...new Set([first, ...others].map((subject) => tag(scope, subject)))];
};

const workspaceTag = "workspace";
const tagOf = ({ scope, subject }: Pick<Budget, "scope" | "subject">): string =>
  subject === null ? workspaceTag : tag(scope, subject);

/**
 * Returns the tags of the budgets that a request counts towards.
 *
 * @example
 * budgetTags({ keyIds: ["key_1"], userId: "usr_1", models: ["acme/large"], ... })
 * // ["workspace", "key:key_1", "user:usr_1", "model:acme%2Flarge"]
 */
export const budgetTags = ({
  keyIds,
  userId,
  models,
  providers,
  senders = [],
}: Spender): string[] => [
  workspaceTag,
  ...tags("key", keyIds),
  tag("user", userId),
  ...tags("model", models),
  ...tags("provider", providers),
  ...senders.map(({ scope, subject }) => tag(scope, subject)),
];

/** The blocking budgets, in memory. For a workspace without any, a request costs one lookup. */
export class BlockingBudgets {
  /** Called with the workspace whose budgets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  private readonly byWorkspace = new Map<string, readonly Budget[]>();
  /** The customer and tags that budgets of any action count, by workspace. */
  private readonly senderScopes = new Map<string, readonly BudgetScope[]>();

  /** Returns the scopes of senders that budgets of a workspace count; undefined where none do. */
  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined {
    return this.senderScopes.get(workspaceId);
  }

  /** Returns whether a workspace has any. */
  has(workspaceId: string): boolean {
    return this.byWorkspace.has(workspaceId);
  }

  /**
   * Returns the bounds of the budgets that count any of the tags on a day, given in days since the
   * epoch.
   */
  boundsOf(workspaceId: string, tags: readonly string[], day: number): BudgetBound[] {
    return (this.byWorkspace.get(workspaceId) ?? []).flatMap((budget) => {
      if (budget.subject !== eachSubject) {
        return tags.includes(tagOf(budget)) ? [{ budget, counter: counterOf(budget, day) }] : [];
      }
      const prefix = tag(budget.scope, "");
      return tags
        .filter((each) => each.startsWith(prefix))
        .map((each) => {
          const one = { ...budget, subject: decodeURIComponent(each.slice(prefix.length)) };
          return { budget: one, counter: counterOf(one, day) };
        });
    });
  }

  /** Puts a budget in force, or removes it where it does not block. */
  put(budget: Budget): void {
    if (isSenderScope(budget.scope)) {
      const known = this.senderScopes.get(budget.workspaceId) ?? [];
      this.senderScopes.set(budget.workspaceId, [...new Set([...known, budget.scope])]);
    }
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

  /** Replaces a workspace's blocking budgets. */
  replaceWorkspace(workspaceId: string, budgets: readonly Budget[]): void {
    const scopes = new Set([
      ...(this.senderScopes.get(workspaceId) ?? []),
      ...budgets.map(({ scope }) => scope).filter(isSenderScope),
    ]);
    if (scopes.size > 0) this.senderScopes.set(workspaceId, [...scopes]);
    if (budgets.length === 0) this.byWorkspace.delete(workspaceId);
    else this.byWorkspace.set(workspaceId, budgets);
  }
}

/** Returns the name of the sum that a budget bounds on a day. */
export function counterOf(
  budget: Pick<Budget, "scope" | "subject" | "period">,
  day: number,
): string {
  const { startMs, endMs } = periodAt(budget.period, day * dayMs);
  return `${tagOf(budget)}~${startMs / dayMs}~${endMs / dayMs}`;
}

/** Parses the name of a sum. */
export function readCounter(counter: string): { tag: string; firstDay: number; endDay: number } {
  const [name = "", firstDay, endDay] = counter.split("~");
  return { tag: name, firstDay: Number(firstDay), endDay: Number(endDay) };
}
