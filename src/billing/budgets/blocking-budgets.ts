import { dayMs } from "../../platform/kernel/clock.ts";
import {
  counterOf,
  eachSubject,
  isSenderScope,
  planPrefix,
  tag,
  tagOf,
  weightedTag,
  type AdmittedUse,
  type Budget,
  type BudgetBound,
  type BudgetScope,
  type CustomerPlans,
  type Sender,
  type Span,
} from "./budget.ts";
import {
  daysOfWindow,
  readWindowSubject,
  spanOf,
  windowScope,
  windowSubjectOf,
} from "./budget-windows.ts";

/** The blocking budgets, in memory. For a workspace without any, a request costs one lookup. */
export class BlockingBudgets {
  /** Called with the workspace whose budgets changed. */
  onChange: (workspaceId: string) => void = () => undefined;
  /** The plans of customers, once they are open. */
  customers: CustomerPlans | undefined;
  private readonly byWorkspace = new Map<string, readonly Budget[]>();
  /** The budgets of any action whose periods begin in a time zone, by workspace. */
  private readonly zoned = new Map<string, readonly ZonedBudget[]>();
  /** The customer and tags that budgets of any action count, by workspace. */
  private readonly senderScopes = new Map<string, readonly BudgetScope[]>();

  /** Returns the scopes of senders that budgets of a workspace count; undefined where none do. */
  senderScopesOf(workspaceId: string): readonly BudgetScope[] | undefined {
    return this.senderScopes.get(workspaceId);
  }

  /** Returns whether a workspace has any. */
  has(workspaceId: string): boolean {
    return this.byWorkspace.has(workspaceId) || this.customers?.isActive(workspaceId) === true;
  }

  /**
   * Returns the bounds of the budgets that count any of the tags on a day, given in days since the
   * epoch.
   */
  boundsOf(workspaceId: string, tags: readonly string[], day: number): BudgetBound[] {
    const bounds = (this.byWorkspace.get(workspaceId) ?? []).flatMap((budget) => {
      if (budget.timeZone !== null) return windowBounds(budget, tags);
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
    const share = this.customers && tags.find((each) => each.startsWith(planPrefix));
    return share === undefined ? bounds : [...bounds, ...this.planBound(workspaceId, share, day)];
  }

  private planBound(workspaceId: string, share: string, day: number): BudgetBound[] {
    const { tag: name, weight } = weightedTag(share);
    const externalId = decodeURIComponent(name.slice(planPrefix.length));
    const bound = this.customers?.boundOf(workspaceId, externalId, day);
    return bound === undefined ? [] : [{ ...bound, weight }];
  }

  /** Returns the periods of budgets in a time zone that count a request. */
  windowsOf(workspaceId: string, { tags, atMs }: AdmittedUse): readonly Sender[] {
    const budgets = this.zoned.get(workspaceId);
    if (budgets === undefined) return noSenders;
    const counted = tags();
    return budgets.flatMap((each) => each.windowsOf(counted, atMs));
  }

  /** Puts a budget in force, or removes it where it does not block. */
  put(budget: Budget): void {
    const { id, workspaceId } = budget;
    const others = <Each extends { id: string }>(of: ReadonlyMap<string, readonly Each[]>) =>
      (of.get(workspaceId) ?? []).filter((each) => each.id !== id);
    this.replaceWorkspace(workspaceId, [
      ...others(this.byWorkspace),
      ...others(this.zoned)
        .map((each) => each.budget)
        .filter(({ action }) => action !== "block"),
      budget,
    ]);
    this.onChange(workspaceId);
  }

  remove({ id, workspaceId }: Budget): void {
    const others = [
      ...(this.byWorkspace.get(workspaceId) ?? []),
      ...(this.zoned.get(workspaceId) ?? [])
        .map(({ budget }) => budget)
        .filter(({ action }) => action !== "block"),
    ].filter((budget) => budget.id !== id);
    this.replaceWorkspace(workspaceId, others);
    this.onChange(workspaceId);
  }

  /** Replaces a workspace's budgets, of any action: those that block are in force. */
  replaceWorkspace(workspaceId: string, budgets: readonly Budget[]): void {
    const scopes = new Set([
      ...(this.senderScopes.get(workspaceId) ?? []),
      ...budgets.map(({ scope }) => scope).filter(isSenderScope),
    ]);
    if (scopes.size > 0) this.senderScopes.set(workspaceId, [...scopes]);
    replaceIn(
      this.byWorkspace,
      workspaceId,
      budgets.filter(({ action }) => action === "block"),
    );
    replaceIn(
      this.zoned,
      workspaceId,
      budgets.filter(({ timeZone }) => timeZone !== null).map((each) => new ZonedBudget(each)),
    );
  }
}

const noSenders: readonly Sender[] = [];

function replaceIn<Each>(
  map: Map<string, readonly Each[]>,
  workspaceId: string,
  all: readonly Each[],
): void {
  if (all.length === 0) map.delete(workspaceId);
  else map.set(workspaceId, all);
}

/** A budget in a time zone, with its present period, which few requests leave. */
class ZonedBudget {
  private span: Span = { startMs: 0, endMs: 0 };

  constructor(readonly budget: Budget) {}

  get id(): string {
    return this.budget.id;
  }

  /** Returns the period that counts a request, for each value where the budget bounds each. */
  windowsOf(tags: readonly string[], atMs: number): Sender[] {
    const { scope, subject } = this.budget;
    if (subject !== eachSubject)
      return tags.includes(tagOf(this.budget)) ? [this.windowAt(atMs)] : [];
    const prefix = tag(scope, "");
    return tags
      .filter((each) => each.startsWith(prefix))
      .map((each) => this.windowAt(atMs, decodeURIComponent(each.slice(prefix.length))));
  }

  private windowAt(atMs: number, value?: string): Sender {
    if (atMs < this.span.startMs || atMs >= this.span.endMs) this.span = spanOf(this.budget, atMs);
    const { startMs } = this.span;
    return { scope: windowScope, subject: windowSubjectOf(this.budget, { startMs, value }) };
  }
}

/** Returns the bounds of a budget in a time zone, whose periods are among the tags of a request. */
function windowBounds(budget: Budget, tags: readonly string[]): BudgetBound[] {
  const prefix = tag(windowScope, windowSubjectOf(budget, { startMs: 0 }).slice(0, -1));
  return tags
    .filter((each) => each.startsWith(prefix))
    .map((each) => {
      const subject = decodeURIComponent(each.slice(tag(windowScope, "").length));
      const { startMs, value } = readWindowSubject(subject);
      const days = daysOfWindow(budget, startMs);
      return {
        budget: value === undefined ? budget : { ...budget, subject: value },
        counter: `${each}~${days.startMs / dayMs}~${days.endMs / dayMs}`,
      };
    });
}
