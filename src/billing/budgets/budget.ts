import { dayMs } from "../../platform/kernel/clock.ts";

/** The subjects that a budget can have, beside the values of a tag. */
export const budgetScopes = [
  "workspace",
  "team",
  "key",
  "user",
  "model",
  "provider",
  "customer",
] as const;
/** Matches the scope of a tag: a member of a request's metadata. */
export const tagScopePattern = /^tag:[\w.-]{1,60}$/;
/**
 * `plan` is the price of what a customer uses, which its plan bounds; `window` is a period of a budget
 * in a time zone.
 */
export type BudgetScope = (typeof budgetScopes)[number] | `tag:${string}` | "plan" | "window";

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
type BudgetAction = (typeof budgetActions)[number];

/**
 * The calendar periods (UTC) after which a budget starts again. Weeks begin on Monday. `total` never
 * starts again.
 */
export const budgetPeriods = ["daily", "weekly", "monthly", "total"] as const;
type BasePeriod = (typeof budgetPeriods)[number];
/**
 * A period, with the day on which it starts again where that is not the first: `weekly@7` on Sundays,
 * `monthly@15` on the 15th, `monthly@31` on the last day of each month.
 */
export type BudgetPeriod = BasePeriod | `${"weekly" | "monthly"}@${number}`;

/** Returns a period without the day on which it starts again, and that day; 1 is the first. */
export function basePeriodOf(period: BudgetPeriod): { period: BasePeriod; resetDay: number } {
  const [base, day] = period.split("@");
  return { period: base as BasePeriod, resetDay: Number(day ?? 1) };
}

/** Returns the period that starts again on a day of the week (1 is Monday) or of the month. */
export const periodFrom = (period: BasePeriod, resetDay: number): BudgetPeriod =>
  (period === "weekly" || period === "monthly") && resetDay !== 1
    ? `${period}@${resetDay}`
    : period;

/** The end of the period `total`: the last day of the year 9999. */
const totalEndDay = 2_932_896;

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
  /** The id of the team, key, user, model or provider; null for the workspace. */
  subject: string | null;
  period: BudgetPeriod;
  /** The IANA time zone in which its periods begin; null is UTC. */
  timeZone: string | null;
  action: BudgetAction;
  limitNano: bigint;
  /** Percentages of the limit at which an alert is sent, in ascending order. */
  thresholds: readonly number[];
  /** The version of the secret that signs webhooks; each rotation increments it. */
  secretVersion: number;
  createdAtMs: number;
  updatedAtMs: number | null;
}

/** A request, when it was admitted. */
export interface AdmittedUse {
  tags(): readonly string[];
  atMs: number;
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
  const { period: base, resetDay } = basePeriodOf(period);
  if (base === "total") return { startMs: 0, endMs: totalEndDay * dayMs };
  if (base === "monthly") {
    const date = new Date(nowMs);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    const isBefore = nowMs < startIn(year, month, resetDay);
    const first = isBefore ? month - 1 : month;
    return { startMs: startIn(year, first, resetDay), endMs: startIn(year, first + 1, resetDay) };
  }
  const first = base === "daily" ? day : day - ((daysSinceMonday(day) + 8 - resetDay) % 7);
  return { startMs: first * dayMs, endMs: (first + (base === "daily" ? 1 : 7)) * dayMs };
}

/** Returns when a period of a month begins; on its last day where the month is shorter. */
const startIn = (year: number, month: number, resetDay: number): number =>
  Date.UTC(year, month, Math.min(resetDay, new Date(Date.UTC(year, month + 1, 0)).getUTCDate()));

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
  /** The team, and the customer, tags and periods that budgets count; absent means none. */
  senders?: readonly Sender[];
  /** The customer whose plan counts the price of the request; absent means none. */
  share?: CustomerShare | undefined;
}

/** A customer of a request, with the ten-thousandths of the cost that its price is. */
export interface CustomerShare {
  externalId: string;
  weight: number;
}

/** The weight of amounts that are counted as they are. */
export const plainWeight = 10_000;

/** Returns the price of a cost at a weight, rounded up to the nano-dollar. */
export const priceOf = (costNano: bigint, weight: number): bigint => {
  if (weight === plainWeight) return costNano;
  if (costNano < 0n) return -priceOf(-costNano, weight);
  return (costNano * BigInt(weight) + BigInt(plainWeight - 1)) / BigInt(plainWeight);
};

/** Returns the most cost whose price is within an amount. */
export const costWithin = (priceNano: bigint, weight: number): bigint =>
  weight === plainWeight || priceNano < 0n
    ? priceNano
    : (priceNano * BigInt(plainWeight)) / BigInt(weight);

/** Why a customer is served nothing, free models included. */
export type CustomerRefusal = "customer_suspended" | "too_many_customers";

/** The plans of customers, as the ledger looks them up. */
export interface CustomerPlans {
  /** Returns whether requests of a workspace may have a customer that is counted. */
  isActive(workspaceId: string): boolean;
  /** Returns the share that a customer pays of a request; undefined where it is not counted. */
  shareOf(
    workspaceId: string,
    request: { externalId: string; models: readonly string[] },
  ): CustomerShare | undefined;
  /** Returns why a customer is served nothing; undefined where it is served. */
  refusalOf(workspaceId: string, externalId: string): CustomerRefusal | undefined;
  /** Returns what bounds a customer on a day; undefined where its plan has no bound. */
  boundOf(workspaceId: string, externalId: string, day: number): BudgetBound | undefined;
}

/** A blocking budget in the period of a day. */
export interface BudgetBound {
  budget: Budget;
  /**
   * The name of the sum that the budget bounds: `tag~first day~day after the last`. Budgets of one
   * subject and period share it.
   */
  counter: string;
  /** The weight at which the sum counts amounts; absent counts them as they are. */
  weight?: number;
}

/** The tags by scope and subject, kept since most requests use the same few. */
const knownTags = new Map<string, string>();
const knownTagsMax = 10_000;

/** Returns the name of what a scope counts of a subject. */
export function tag(scope: Budget["scope"], subject: string): string {
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
/** Returns the tag of the requests that a budget counts. */
export const tagOf = ({ scope, subject }: Pick<Budget, "scope" | "subject">): string =>
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
  share,
}: Spender): string[] => [
  workspaceTag,
  ...tags("key", keyIds),
  tag("user", userId),
  ...tags("model", models),
  ...tags("provider", providers),
  ...senders.map(({ scope, subject }) => tag(scope, subject)),
  ...(share === undefined ? [] : [`${tag("plan", share.externalId)}@${share.weight}`]),
];

/** Begins the tags of customers whose plan counts the price. */
export const planPrefix = "plan:";

/** Returns the sum that a tag counts in, and the weight of what it counts there. */
export function weightedTag(each: string): { tag: string; weight: number } {
  if (!each.startsWith(planPrefix)) return { tag: each, weight: plainWeight };
  const at = each.lastIndexOf("@");
  return { tag: each.slice(0, at), weight: Number(each.slice(at + 1)) };
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
