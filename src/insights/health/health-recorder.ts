import {
  isOutage,
  outcomeOf,
  type AttemptRecord,
  type GenerationRecord,
} from "../generation-record.ts";
import type { Traffic } from "./traffic.ts";
import type { ProviderBudgets } from "./provider-budgets.ts";
import type { ProviderStates } from "./provider-states.ts";

/** Records what inference reports for the health snapshot, in constant time and without waiting. */
export class HealthRecorder {
  private readonly options: {
    traffic: Traffic;
    states: ProviderStates;
    budgets: ProviderBudgets;
  };

  constructor(options: HealthRecorder["options"]) {
    this.options = options;
  }

  /**
   * Records an attempt that has ended. One with a caller's own key says nothing about the service.
   */
  attemptEnded(attempt: AttemptRecord): void {
    if (attempt.credentialSource !== undefined) return;
    this.options.traffic.attempted(attempt);
    const outcome = outcomeOf(attempt);
    if (outcome !== "neutral") this.options.states.record(attempt.provider, outcome);
  }

  /** Records a request that was answered, whole or in part, and settled. */
  settled(record: GenerationRecord): void {
    this.options.traffic.settled(record);
    this.options.budgets.spend(record.provider, record.costNanoUsd);
  }

  /**
   * Records a request that was not answered. `ownFault` means that the gateway itself was the
   * reason.
   */
  failed({ attempts, ownFault }: { attempts: readonly AttemptRecord[]; ownFault: boolean }): void {
    if (!attempts.every(({ credentialSource }) => credentialSource === undefined)) return;
    this.options.traffic.failed({ outage: ownFault || attempts.some(isOutage) });
  }
}
