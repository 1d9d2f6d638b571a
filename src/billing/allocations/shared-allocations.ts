import type { Clock } from "../../platform/kernel/clock.ts";
import { SharedStateAwayError } from "../../platform/shared-state/shared-state-error.ts";
import type {
  Allocation,
  AllocationOutcome,
  Allocations,
  KeyFigures,
  Release,
} from "./book-allocations.ts";
import type { SpendingKey } from "../ledger/hold-rule.ts";
import { allocatedScript, allocateScript, figuresScript } from "./allocation-scripts.ts";
import { forgetScript, keyValues } from "../ledger/shared/ledger-scripts.ts";
import { hourOf } from "../ledger/shared/local-holds.ts";
import type { OpenCharges } from "../ledger/shared/open-charges.ts";
import type { LedgerAnswer, SharedAccounts } from "../ledger/shared/shared-accounts.ts";

/** Options of the shared allocations. */
interface SharedAllocationsOptions {
  accounts: SharedAccounts;
  charges: OpenCharges;
  clock: Clock;
  /** Called before a request to the server, so that the server knows the earlier charges. */
  beforeAsking(): void;
  /** Called with each answer of the server about a workspace. */
  onAnswer(workspaceId: string, answer: LedgerAnswer): void;
}

/** Milliseconds before a message that did not reach the server is sent again, and how often. */
const retryMs = 200;
const retriesMax = 300;

/**
 * The allocations of several processes. Until its run is committed, an allocation is a hold of this
 * gateway on the owner's limits, which the server frees if the gateway dies. From then on the
 * database has it, and every reading of the owner's figures includes it.
 */
export class SharedAllocations implements Allocations {
  constructor(private readonly options: SharedAllocationsOptions) {}

  async allocate(allocation: Allocation): Promise<AllocationOutcome> {
    const { id, workspaceId, keys, amountNano, spentByRunsNano } = allocation;
    const [key, parent] = keys;
    const values = [
      id,
      hourOf(this.options.clock),
      String(amountNano),
      String(spentByRunsNano),
      ...keyValues({ key, parent }),
    ];
    try {
      const { outcome, detail } = await this.ask(allocateScript, workspaceId, values);
      if (outcome === "ok") return { ok: true };
      const [freeNano = 0n, heldNano = 0n] = detail.split("|").map(BigInt);
      const reason = outcome === "key_limit" ? outcome : "insufficient_balance";
      return { ok: false, reason, freeNano, heldNano };
    } catch (error) {
      if (!(error instanceof SharedStateAwayError)) throw error;
      // The server may still read the request when it is back.
      this.undo(allocation);
      return { ok: false, reason: "away", freeNano: 0n, heldNano: 0n };
    }
  }

  async committed({ id, workspaceId, keys, amountNano }: Allocation): Promise<void> {
    const [key, parent] = keys;
    const values = [id, key.keyId, parent?.keyId ?? "", String(amountNano)];
    await this.untilHeard(() => this.options.accounts.run(allocatedScript, workspaceId, values));
  }

  undo({ id, workspaceId }: Pick<Allocation, "id" | "workspaceId">): void {
    this.options.charges.void(id, { workspaceId, keyIds: [] });
  }

  release({ workspaceId, keys }: Release): Promise<void> {
    return this.forget(
      workspaceId,
      keys.map(({ keyId }) => keyId),
    );
  }

  close({ workspaceId, keyId }: { workspaceId: string; keyId: string }): Promise<void> {
    return this.forget(workspaceId, [keyId]);
  }

  async figures({
    workspaceId,
    key,
  }: {
    workspaceId: string;
    key: SpendingKey;
  }): Promise<KeyFigures> {
    const values = [hourOf(this.options.clock), ...keyValues({ key, parent: undefined })];
    const windowed =
      key.keyLimit === null ? [...values.slice(0, 3), 30 * 24, values[4] ?? 0] : values;
    const { detail } = await this.ask(figuresScript, workspaceId, windowed);
    const [spentNano = 0n, heldNano = 0n, allocatedNano = 0n] = detail.split("|").map(BigInt);
    return { spentNano, heldNano, allocatedNano };
  }

  private async ask(
    script: typeof figuresScript,
    workspaceId: string,
    values: readonly (string | number)[],
  ): Promise<LedgerAnswer> {
    this.options.beforeAsking();
    const answer = await this.options.accounts.ask(script, workspaceId, values);
    this.options.onAnswer(workspaceId, answer);
    return answer;
  }

  /** Makes the next request read the figures of keys from the database, which has changed. */
  private async forget(workspaceId: string, keyIds: readonly string[]): Promise<void> {
    await this.untilHeard(() => this.options.accounts.run(forgetScript, workspaceId, keyIds));
  }

  /**
   * Repeats a message while the server is away. A server that forgot everything meanwhile reads the
   * database.
   */
  private async untilHeard(send: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await send();
        return;
      } catch (error) {
        if (!(error instanceof SharedStateAwayError) || attempt >= retriesMax) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
  }
}
