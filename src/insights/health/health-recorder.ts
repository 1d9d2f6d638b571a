import { isOutage, outcomeOf } from "../attempt-outcome.ts";
import type { AttemptRecord, GenerationRecord } from "../generation-record.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";
import type { ProviderStates } from "./provider-states.ts";
import type { Traffic } from "./traffic.ts";

/** Notes for the health snapshot what inference reports; constant work, and never a wait. */
export class HealthRecorder {
  private readonly options: {
    traffic: Traffic;
    states: ProviderStates;
    budgets: ProviderBudgets;
  };

  constructor(options: HealthRecorder["options"]) {
    this.options = options;
  }

  /** A try has ended; one with a caller's own key says nothing of the service. */
  attemptEnded(attempt: AttemptRecord): void {
    if (attempt.credentialSource !== undefined) return;
    this.options.traffic.attempted(attempt);
    const outcome = outcomeOf(attempt);
    if (outcome !== "neutral") this.options.states.record(attempt.provider, outcome);
  }

  /** A request was answered, whole or in part, and settled. */
  settled(record: GenerationRecord): void {
    this.options.traffic.settled(record);
    this.options.budgets.spend(record.provider, record.costNanoUsd);
  }

  /** A request was not answered; `ownFault` where the gateway itself was the reason. */
  failed({ attempts, ownFault }: { attempts: readonly AttemptRecord[]; ownFault: boolean }): void {
    if (!attempts.every(({ credentialSource }) => credentialSource === undefined)) return;
    this.options.traffic.failed({ outage: ownFault || attempts.some(isOutage) });
  }
}
