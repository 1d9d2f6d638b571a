import type { ProviderState } from "./provider-states.ts";
import { RecentWindow } from "./recent-window.ts";
import { RetryBudget } from "./retry-budget.ts";

/** What a plan found of a provider at its moment. */
interface Seen {
  /** The moment's number; 0 where no plan has looked yet. */
  moment: number;
  state: ProviderState | undefined;
  /** Anything failed within the window of outages; where nothing did, no model at the provider has an outage either. */
  failedLately: boolean;
  hasOutage: boolean;
}

/** Everything that is remembered of a provider. */
export class ProviderWindows {
  readonly id: string;
  readonly own = new RecentWindow();
  readonly retries: RetryBudget;
  readonly models = new Map<string, RecentWindow>();
  /** Kept here rather than in a map of each plan, which would look every provider up by its id again. */
  readonly seen: Seen = { moment: 0, state: undefined, failedLately: false, hasOutage: false };

  constructor(id: string, nowMs: number) {
    this.id = id;
    this.retries = new RetryBudget(nowMs);
  }
}
